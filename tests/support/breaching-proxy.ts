// Stands before a real server and breaks one rule of the contract: in an exchange over HTTP, or in the frames of a
// socket. Without a breach it is faithful. For tests of the conformance kit.
import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocket, WebSocketServer } from "ws";

export type ProxiedRequest = {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
};

export type ProxiedAnswer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
};

export type Pass = (request: ProxiedRequest) => Promise<ProxiedAnswer>;

/** Of one direction: the frame's text as it goes on; undefined drops it. `back` answers the sender, `on` adds a frame. */
type FrameBreach = (
  frame: Record<string, unknown>,
  back: (frame: object) => void,
  on: (frame: object) => void,
) => object | undefined;

export type Breach = {
  readonly http?: (request: ProxiedRequest, pass: Pass) => Promise<ProxiedAnswer>;
  /** From the side that dialled. */
  readonly up?: FrameBreach;
  /** From the server. */
  readonly down?: FrameBreach;
  /** The code with which the side that dialled sees the connection end. */
  readonly closeCode?: (code: number) => number;
  /** The code with which the server sees it end. */
  readonly closeCodeUp?: (code: number) => number;
};

export type BreachingProxy = { readonly url: string; readonly stop: () => Promise<void> };

/** `onSocket`: the breach of one connection, where each has its own; `hangUp` closes it towards the side that dialled. */
export async function startBreachingProxy(
  target: () => string,
  breach: Breach & { readonly onSocket?: (hangUp: (code: number) => void) => Breach },
  port = 0,
): Promise<BreachingProxy> {
  const pass: Pass = (request) => forward(target(), request);
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const { method = "GET", url = "/", headers } = incoming;
      const request = { method, path: url, headers, body: Buffer.concat(chunks) };
      (breach.http ?? ((each, on) => on(each)))(request, pass).then(
        ({ status, headers: own, body }) => {
          const { "transfer-encoding": _chunked, connection: _connection, ...kept } = own;
          outgoing.writeHead(status, { ...kept, "content-length": body.length }).end(body);
        },
        () => outgoing.destroy(),
      );
    });
  });
  const sockets = new WebSocketServer({ noServer: true });
  server.on("upgrade", (request, socket, head) => {
    sockets.handleUpgrade(request, socket, head, (dialled) => {
      const own = breach.onSocket?.((code) => dialled.close(code)) ?? breach;
      join(dialled, new WebSocket(target().replace(/^http/, "ws") + (request.url ?? "")), own);
    });
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function forward(target: string, { method, path, headers, body }: ProxiedRequest): Promise<ProxiedAnswer> {
  const { hostname, port } = new URL(target);
  return new Promise((resolve, reject) => {
    const { "content-length": _length, "transfer-encoding": _encoding, ...kept } = headers;
    const own =
      body.length === 0 && headers["content-type"] === undefined ? kept : { ...kept, "content-length": body.length };
    const outgoing = httpRequest({ hostname, port, method, path, headers: own, agent: false }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("error", reject);
      incoming.on("end", () => {
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: Buffer.concat(chunks) });
      });
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

function join(dialled: WebSocket, server: WebSocket, breach: Breach): void {
  const waiting: string[] = [];
  const toServer = (text: string) => (server.readyState === WebSocket.OPEN ? server.send(text) : waiting.push(text));
  const toDialled = (text: string) => dialled.send(text);
  server.on("open", () => {
    for (const text of waiting) server.send(text);
  });
  dialled.on("message", (data, isBinary) => {
    if (isBinary) server.send(data, { binary: true });
    else bend(data.toString(), breach.up, toServer, toDialled);
  });
  server.on("message", (data) => bend(data.toString(), breach.down, toDialled, toServer));
  dialled.on("close", (code) => hangUp(server, breach.closeCodeUp?.(code) ?? code));
  server.on("close", (code) => hangUp(dialled, breach.closeCode?.(code) ?? code));
  for (const socket of [dialled, server]) socket.on("error", () => undefined);
}

/** What cannot be read goes on as it came. */
function bend(
  text: string,
  breach: FrameBreach | undefined,
  on: (text: string) => void,
  back: (text: string) => void,
): void {
  const frame = breach === undefined ? undefined : parseObject(text);
  if (frame === undefined || breach === undefined) {
    on(text);
    return;
  }
  const bent = breach(
    frame,
    (each) => back(JSON.stringify(each)),
    (each) => on(JSON.stringify(each)),
  );
  if (bent !== undefined) on(bent === frame ? text : JSON.stringify(bent));
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function hangUp(socket: WebSocket, code: number): void {
  if (code === 1005 || code === 1006) socket.terminate();
  else if (socket.readyState !== WebSocket.CONNECTING) socket.close(code);
  else socket.terminate();
}

/** The JSON object that an answer or request holds; an empty one where it holds none. */
export function bodyOf({ body }: { readonly body: Buffer }): Record<string, unknown> {
  return parseObject(body.toString()) ?? {};
}

export function withBody<T extends { readonly body: Buffer }>(message: T, body: object): T {
  return { ...message, body: Buffer.from(JSON.stringify(body)) };
}

// A TCP proxy that cuts the connection between commit and answer: it passes the request on, waits for the whole reply,
// keeps it, and closes the connection that waits for it. So a retry can be compared with the answer that was lost.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Miss, Skipped } from "../frame/endings.ts";
import { expectThat } from "../frame/expect.ts";
import { describeCall, exchange, type HttpAnswer, type HttpCall, type HttpTarget, NoAnswer, readBody } from "./http.ts";
import { type Frame, type PeerIdentity, SocketPeer } from "./socket-peer.ts";

type CuttingProxy = {
  readonly port: number;
  /** What the server answered and the client did not receive. */
  readonly swallowed: () => Buffer;
  readonly stop: () => void;
};

/**
 * With a marker it passes everything until a client's bytes contain it, and keeps every later answer from the client.
 */
async function startCuttingProxy(target: HttpTarget, marker?: string): Promise<CuttingProxy> {
  if (target.type === "tcp" && target.secure) {
    throw new Skipped("the proxy that loses answers cannot look into TLS; give an http address");
  }
  const sockets = new Set<Socket>();
  const replies: Buffer[] = [];
  const server = createServer((client) => {
    const upstream = target.type === "unix" ? connect(target.path) : connect(target.port, target.host);
    let swallowing = marker === undefined;
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", end);
      socket.on("close", () => {
        end();
        sockets.delete(socket);
      });
    }
    client.on("data", (chunk) => {
      swallowing ||= marker !== undefined && chunk.includes(marker);
      upstream.write(chunk);
    });
    upstream.on("data", (chunk) => {
      if (!swallowing) client.write(chunk);
      else {
        replies.push(chunk);
        // A socket that stays open has no end to wait for: its first bytes show that the server has answered.
        if (marker !== undefined) end();
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    swallowed: () => Buffer.concat(replies),
    stop: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** Sends a frame that contains the marker, as a client, on a connection that is lost with the reply. */
export async function loseReply(target: HttpTarget, member: PeerIdentity, frame: Frame, marker: string): Promise<void> {
  const proxy = await startCuttingProxy(target, marker);
  try {
    const peer = await SocketPeer.dial(`http://127.0.0.1:${proxy.port}`, member.meshId, { unmasked: true });
    await peer.sayHello(member, "client");
    peer.sendText(JSON.stringify({ ...frame, id: 7 }));
    await peer.closed();
  } finally {
    proxy.stop();
  }
  expectThat(proxy.swallowed().length > 0, "a reply that the proxy kept", "none", `frame ${frame.type} ${marker}`);
}

/** Sends a request whose answer is lost on the way, and returns that answer. */
export async function loseAnswer(target: HttpTarget, call: HttpCall): Promise<HttpAnswer> {
  const proxy = await startCuttingProxy(target);
  const through: HttpTarget = { type: "tcp", host: "127.0.0.1", port: proxy.port, secure: false };
  try {
    await exchange(through, call);
    throw new Miss({ expected: "a lost answer", got: "an answer through the proxy", request: describeCall(call) });
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    return readSwallowed(proxy.swallowed(), call);
  } finally {
    proxy.stop();
  }
}

function readSwallowed(bytes: Buffer, call: HttpCall): HttpAnswer {
  const request = describeCall(call);
  const end = bytes.indexOf("\r\n\r\n");
  const [first = "", ...fields] = bytes.subarray(0, Math.max(end, 0)).toString("latin1").split("\r\n");
  const status = Number(/^HTTP\/1\.[01] ([0-9]{3})/.exec(first)?.[1] ?? 0);
  if (status === 0) {
    throw new Miss({ expected: "an HTTP answer", got: bytes.subarray(0, 200).toString("latin1"), request });
  }
  const headers = Object.fromEntries(
    fields.map((line) => {
      const [name = "", ...value] = line.split(":");
      return [name.toLowerCase(), value.join(":").trim()];
    }),
  );
  const rest = bytes.subarray(end + 4);
  const body = /chunked/i.test(headers["transfer-encoding"] ?? "") ? joinChunks(rest) : rest;
  const text = body.toString("utf8");
  return { status, headers, text, body: readBody(text), request };
}

function joinChunks(bytes: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    const size = lineEnd < 0 ? 0 : Number.parseInt(bytes.subarray(at, lineEnd).toString("latin1"), 16);
    if (!(size > 0)) break;
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
  return Buffer.concat(parts);
}

// One call to the daemon over its Unix socket: a request, its time limit, its answer. An HTTP answer of any status is a
// result. Only a missing answer is an error, and it says whether the daemon may have acted.
import type { Agent, IncomingMessage } from "node:http";
import type { ErrorBody } from "@claudemesh/protocol/errors";
import { parseOwnJsonText, writeStrictJson } from "@claudemesh/protocol/json";
import { DaemonUnreachable } from "./daemon-failures.ts";
import { watchSending } from "./request-sending.ts";

// An ES module import would load every lazy part of node:http, which would take most of the time of a short command.
const { Agent: HttpAgent, request: httpRequest } = process.getBuiltinModule("node:http");

/** `body` is an ErrorBody exactly when the daemon refused; `isErrorBody` tests for it, and `bodyOf` throws it. */
export type DaemonAnswer<Body> = { readonly status: number; readonly body: Body | ErrorBody };

export type DaemonMethod = "GET" | "POST" | "PUT" | "DELETE";

export type CallOptions = {
  readonly headers?: Readonly<Record<string, string>>;
  /** Replaces the client's own time-out. */
  readonly timeoutMs?: number;
};

export type DaemonCall = <Body = unknown>(
  method: DaemonMethod,
  path: string,
  body?: unknown,
  options?: CallOptions,
) => Promise<DaemonAnswer<Body>>;

export type DaemonClientOptions = {
  readonly socketPath: string;
  /** For each call, from connecting to the last byte of the answer. */
  readonly timeoutMs: number;
};

export type DaemonCaller = { readonly call: DaemonCall; readonly close: () => void };

export function createDaemonCaller({ socketPath, timeoutMs }: DaemonClientOptions): DaemonCaller {
  const agent = new HttpAgent({ keepAlive: true });
  const call = (method: DaemonMethod, path: string, body?: unknown, options: CallOptions = {}) =>
    callDaemon(agent, { socketPath, timeoutMs, ...options, method, path, body });
  return { call: call as DaemonCall, close: () => agent.destroy() };
}

type Call = DaemonClientOptions & {
  readonly method: DaemonMethod;
  readonly path: string;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

/** A restarted daemon does not have a kept-alive connection any more: reads are asked again on a new one. */
async function callDaemon(agent: Agent, call: Call): Promise<DaemonAnswer<unknown>> {
  const { request, answer } = startCall(agent, call);
  try {
    return await answer;
  } catch (error) {
    const isStale = error instanceof DaemonUnreachable && error.sent && request.reusedSocket && !error.timedOut;
    if (!isStale || call.method !== "GET") throw error;
    return await startCall(false, call).answer;
  }
}

function startCall(agent: Agent | false, call: Call) {
  const payload = call.body === undefined ? undefined : Buffer.from(writeStrictJson(call.body as object));
  const request = httpRequest({
    agent,
    socketPath: call.socketPath,
    method: call.method,
    path: call.path,
    headers: {
      ...call.headers,
      ...(payload === undefined ? {} : { "content-type": "application/json", "content-length": payload.length }),
    },
  });
  const wasSent = watchSending(request);
  const answer = new Promise<DaemonAnswer<unknown>>((resolve, reject) => {
    const fail = (why: string, timedOut: boolean, cause?: unknown) => {
      const message = `The daemon at ${call.socketPath} did not answer: ${why}.`;
      reject(new DaemonUnreachable(message, { sent: wasSent(), timedOut, cause }));
    };
    const timer = setTimeout(() => {
      fail(`nothing came within ${call.timeoutMs} ms`, true);
      request.destroy();
    }, call.timeoutMs);
    request.on("close", () => clearTimeout(timer));
    request.on("error", (error: NodeJS.ErrnoException) => fail(error.code ?? error.message, false, error));
    request.on("response", (response) => {
      readAnswer(response).then(resolve, (error: Error) => fail(error.message, false, error));
    });
    request.end(payload);
  });
  return { request, answer };
}

/** Throws when the answer is cut off while it is read. */
async function readAnswer(response: IncomingMessage): Promise<DaemonAnswer<unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  const isText = response.headers["content-type"]?.startsWith("text/plain") === true;
  return { status: response.statusCode ?? 0, body: isText ? text : parseBody(text) };
}

function parseBody(text: string): unknown {
  try {
    return parseOwnJsonText(text);
  } catch (cause) {
    throw new Error("what answers on its socket speaks no JSON", { cause });
  }
}

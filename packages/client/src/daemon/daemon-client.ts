// Calling the daemon on this machine over its Unix socket. HTTP answers of any status are results; only "no answer" is
// an error, and it says whether the daemon may have acted. What the bodies look like is in daemon-bodies.ts.

import type { Agent, IncomingMessage } from "node:http";
import type { ErrorBody } from "@claudemesh/protocol/errors";
import { parseOwnJsonText, writeStrictJson } from "@claudemesh/protocol/json";
import type { SendRequest } from "@claudemesh/protocol/messages/send-request";
import type {
  DaemonEvent,
  HealthBody,
  InboxItem,
  InboxQuery,
  MessageFacts,
  OutboxChain,
  OutboxItem,
  OutboxQuery,
  Page,
  PageQuery,
  Peer,
  SearchQuery,
  SendBody,
  TokenRotation,
  VersionBody,
} from "./daemon-bodies.ts";
import type { EventsOptions } from "./daemon-events.ts";
import { DaemonRefused, DaemonUnreachable } from "./daemon-failures.ts";
import type { FollowOptions, WaitOptions } from "./inbox-arrivals.ts";
import { watchSending } from "./request-sending.ts";

export type * from "./daemon-bodies.ts";

// As an ES module import it would load every lazy part of node:http, and cost a short command most of its time.
const { Agent: HttpAgent, request: httpRequest } = process.getBuiltinModule("node:http");

export { DaemonRefused, DaemonUnreachable };

/** `body` is an ErrorBody exactly when the daemon refused; `isErrorBody` tells. */
export type DaemonAnswer<Body> = { readonly status: number; readonly body: Body | ErrorBody };

export type DaemonMethod = "GET" | "POST" | "PUT" | "DELETE";

export type DaemonClient = {
  readonly call: <Body = unknown>(
    method: DaemonMethod,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<DaemonAnswer<Body>>;
  readonly version: () => Promise<DaemonAnswer<VersionBody>>;
  readonly health: () => Promise<DaemonAnswer<HealthBody>>;
  readonly send: (
    request: SendRequest,
    options?: { readonly idempotencyKey?: string },
  ) => Promise<DaemonAnswer<SendBody>>;
  readonly inbox: (query?: InboxQuery) => Promise<DaemonAnswer<Page<InboxItem>>>;
  /** Messages whose text has all the words. */
  readonly searchInbox: (query: SearchQuery) => Promise<DaemonAnswer<Page<InboxItem>>>;
  /**
   * The first messages after the query's cursor or time, or after this call; none when the time runs out. `next_cursor`
   * is where the next wait goes on without a gap.
   */
  readonly waitForInbox: (query: InboxQuery, options: WaitOptions) => Promise<DaemonAnswer<Page<InboxItem>>>;
  /** Each message once, from the query's cursor or time on, or from now on; survives the daemon's restarts. */
  readonly followInbox: (query?: InboxQuery, options?: FollowOptions) => AsyncGenerator<InboxItem>;
  /** What happens, from now on or behind an event; survives the daemon's restarts without missing a message. */
  readonly events: (options?: EventsOptions) => AsyncGenerator<DaemonEvent>;
  readonly peers: (query?: PageQuery) => Promise<DaemonAnswer<Page<Peer>>>;
  readonly rotateToken: () => Promise<DaemonAnswer<TokenRotation>>;
  readonly outbox: (query?: OutboxQuery) => Promise<DaemonAnswer<Page<OutboxItem>>>;
  /** By outbox id or client id. */
  readonly outboxRow: (id: string) => Promise<DaemonAnswer<OutboxChain>>;
  /** By client, outbox or broker id. */
  readonly message: (id: string) => Promise<DaemonAnswer<MessageFacts>>;
  /** Lets go of idle connections. */
  readonly close: () => void;
};

export type DaemonClientOptions = {
  readonly socketPath: string;
  /** For each call, from connecting to the last byte of the answer. */
  readonly timeoutMs: number;
};

export function createDaemonClient(options: DaemonClientOptions): DaemonClient {
  const agent = new HttpAgent({ keepAlive: true });
  const call = <Body>(method: DaemonMethod, path: string, body?: unknown, headers?: Readonly<Record<string, string>>) =>
    callDaemon(agent, options, { method, path, body, headers }) as Promise<DaemonAnswer<Body>>;
  const inbox: DaemonClient["inbox"] = (query) => call("GET", `/v1/inbox${queryText(query)}`);
  const events: DaemonClient["events"] = (given) => loadEvents(options.socketPath, given);
  return {
    call,
    version: () => call("GET", "/v1/version"),
    health: () => call("GET", "/v1/health"),
    send: (request, { idempotencyKey } = {}) =>
      call("POST", "/v1/send", request, idempotencyKey === undefined ? {} : idempotencyHeader(idempotencyKey)),
    inbox,
    searchInbox: (query) => call("GET", `/v1/inbox/search${queryText(query)}`),
    waitForInbox: async (query, given) => (await loadArrivals()).waitForInbox({ events, inbox }, query, given),
    followInbox: async function* (query = {}, given = {}) {
      yield* (await loadArrivals()).followInbox({ events, inbox }, query, given);
    },
    events,
    peers: (query) => call("GET", `/v1/peers${queryText(query)}`),
    rotateToken: () => call("POST", "/v1/token/rotate", {}),
    outbox: (query) => call("GET", `/v1/outbox${queryText(query)}`),
    outboxRow: (id) => call("GET", `/v1/outbox/${encodeURIComponent(id)}`),
    message: (id) => call("GET", `/v1/messages/${encodeURIComponent(id)}`),
    close: () => agent.destroy(),
  };
}

// Most programs that call a daemon wait for nothing, and start sooner without the files that do.
const loadArrivals = () => import("./inbox-arrivals.ts");

async function* loadEvents(socketPath: string, options: EventsOptions | undefined): AsyncGenerator<DaemonEvent> {
  const { readEvents } = await import("./daemon-events.ts");
  yield* readEvents(socketPath, options);
}

type Call = {
  readonly method: DaemonMethod;
  readonly path: string;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>> | undefined;
};

/** A kept-alive connection that a restarted daemon no longer has: reads are simply asked again on a new one. */
async function callDaemon(agent: Agent, options: DaemonClientOptions, call: Call): Promise<DaemonAnswer<unknown>> {
  const { request, answer } = startCall(agent, options, call);
  try {
    return await answer;
  } catch (error) {
    const isStale = error instanceof DaemonUnreachable && error.sent && request.reusedSocket && !error.timedOut;
    if (!isStale || call.method !== "GET") throw error;
    return await startCall(false, options, call).answer;
  }
}

function startCall(agent: Agent | false, options: DaemonClientOptions, call: Call) {
  const payload = call.body === undefined ? undefined : Buffer.from(writeStrictJson(call.body as object));
  const request = httpRequest({
    agent,
    socketPath: options.socketPath,
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
      const message = `The daemon at ${options.socketPath} did not answer: ${why}.`;
      reject(new DaemonUnreachable(message, { sent: wasSent(), timedOut, cause }));
    };
    const timer = setTimeout(() => {
      fail(`nothing came within ${options.timeoutMs} ms`, true);
      request.destroy();
    }, options.timeoutMs);
    request.on("close", () => clearTimeout(timer));
    request.on("error", (error: NodeJS.ErrnoException) => fail(error.code ?? error.message, false, error));
    request.on("response", (response) => {
      readAnswer(response).then(resolve, (error: Error) => fail(error.message, false, error));
    });
    request.end(payload);
  });
  return { request, answer };
}

/** Reading throws when the answer is cut off. */
async function readAnswer(response: IncomingMessage): Promise<DaemonAnswer<unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return { status: response.statusCode ?? 0, body: parseBody(Buffer.concat(chunks).toString("utf8")) };
}

function parseBody(text: string): unknown {
  try {
    return parseOwnJsonText(text);
  } catch (cause) {
    throw new Error("what answers on its socket speaks no JSON", { cause });
  }
}

/** A key that begins with a quote would be read as a quoted one, so it goes quoted. */
function idempotencyHeader(key: string): Record<string, string> {
  const value = key.startsWith('"') ? `"${key.replace(/["\\]/g, "\\$&")}"` : key;
  return { "idempotency-key": value };
}

function queryText(query: object | undefined): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) parameters.append(name, String(value));
  }
  return parameters.size === 0 ? "" : `?${parameters}`;
}

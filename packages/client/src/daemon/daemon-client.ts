// Everything that the daemon's local API offers, as typed calls over its Unix socket. daemon-call.ts makes one call;
// the shapes of the answers are in the *-bodies.ts files.
import type {
  DismissRequest,
  InboxNextRequest,
  PeerKey,
  PruneRequest,
  QueueLeaseBody,
  QueueSettleBody,
  TopicPost,
} from "@claudemesh/protocol/messages/local-requests";
import type { RequeueRequest } from "@claudemesh/protocol/messages/requeue-request";
import type { SendRequest } from "@claudemesh/protocol/messages/send-request";
import type { ProfileInput } from "@claudemesh/protocol/wire/operations";
import type { FindingsBody } from "../findings/judge-findings.ts";
import type {
  DaemonEvent,
  Dismissed,
  InboxItem,
  InboxQuery,
  NextBody,
  OutboxChain,
  OutboxItem,
  OutboxQuery,
  Page,
  PageEitherWay,
  PageQuery,
  Pruned,
  ReadMark,
  Reloaded,
  Requeued,
  SearchQuery,
  SendBody,
  TokenRotation,
} from "./daemon-bodies.ts";
import {
  type CallOptions,
  createDaemonCaller,
  type DaemonAnswer,
  type DaemonCall,
  type DaemonClientOptions,
} from "./daemon-call.ts";
import type { EventsOptions } from "./daemon-events.ts";
import { bodyOf, DaemonRefused, DaemonUnreachable } from "./daemon-failures.ts";
import type { FollowOptions, WaitOptions } from "./inbox-arrivals.ts";
import type {
  KnownPeer,
  Lease,
  OnceItem,
  OnceQuery,
  ParkedPage,
  ParkedQuery,
  Pin,
  PinWithCode,
  Profile,
  QueueItem,
  Settlements,
  Subscription,
  Topic,
  TopicsQuery,
} from "./mesh-bodies.ts";
import type {
  AuditReport,
  BrokerStatusBody,
  CompatBody,
  HealthBody,
  MessageFacts,
  VersionBody,
} from "./report-bodies.ts";
import type { SendManyOptions, SendOutcome } from "./send-many.ts";
import type { StageWait, StageWaitOptions, WaitStage } from "./wait-for-stage.ts";

export type { SendRequest } from "@claudemesh/protocol/messages/send-request";
export type { Finding, FindingCode, FindingsBody } from "../findings/judge-findings.ts";
export type * from "./daemon-bodies.ts";
export type { CallOptions, DaemonAnswer, DaemonCall, DaemonClientOptions, DaemonMethod } from "./daemon-call.ts";
export type * from "./mesh-bodies.ts";
export type * from "./report-bodies.ts";
export type { SendManyOptions, SendOutcome } from "./send-many.ts";
export type { StageWait, StageWaitOptions, WaitStage } from "./wait-for-stage.ts";
export { bodyOf, DaemonRefused, DaemonUnreachable };

type Answer<Body> = Promise<DaemonAnswer<Body>>;

/** The message's identity as a header; the same as `client_message_id` in the request. */
export type SendOptions = { readonly idempotencyKey?: string };

export type DaemonClient = {
  /** Calls any route, for those without a call of their own. */
  readonly call: DaemonCall;

  /** Durable on this host when it answers 202. The same id with the same content is always safe to send again. */
  readonly send: (request: SendRequest, options?: SendOptions) => Answer<SendBody>;
  /**
   * Any number of sends, in few requests. Each gets an id where it has none, is asked about again under that id while
   * it has no final answer, and has its own outcome, in their order. Rejects only for a mistake of the caller.
   */
  readonly sendMany: (sends: readonly SendRequest[], options?: SendManyOptions) => Promise<SendOutcome[]>;
  /** The same as a send to `#topic`. */
  readonly post: (request: TopicPost, options?: SendOptions) => Answer<SendBody>;
  /** Where a message is, by client, outbox, inbox or broker id. */
  readonly message: (id: string) => Answer<MessageFacts>;

  /**
   * Waits until a message is stored at the broker, or delivered to all its recipients. Rejects where the message is not
   * known, or where the daemon never answers.
   */
  readonly waitForStage: (id: string, stage: WaitStage, options: StageWaitOptions) => Promise<StageWait>;

  readonly inbox: (query?: InboxQuery) => Answer<PageEitherWay<InboxItem>>;
  /** Unread messages that this reader has not acknowledged; the daemon stores the reader's position. */
  readonly nextInbox: (request: InboxNextRequest) => Answer<NextBody>;
  /** Messages whose text contains all the words. */
  readonly searchInbox: (query: SearchQuery) => Answer<Page<InboxItem>>;
  /**
   * The first messages after the query's cursor or time, or after this call; none when the time runs out. `next_cursor`
   * is where the next wait goes on without a gap.
   */
  readonly waitForInbox: (query: InboxQuery, options: WaitOptions) => Answer<Page<InboxItem>>;
  /** Each message once, from the query's cursor or time on, or from now on; survives restarts of the daemon. */
  readonly followInbox: (query?: InboxQuery, options?: FollowOptions) => AsyncGenerator<InboxItem>;
  /** By inbox id or client id. The first mark stays, however often the call is made. */
  readonly markRead: (id: string) => Answer<ReadMark>;
  /** Events from now on or after a given one; survives restarts of the daemon without missing a message. */
  readonly events: (options?: EventsOptions) => AsyncGenerator<DaemonEvent>;

  readonly outbox: (query?: OutboxQuery) => Answer<PageEitherWay<OutboxItem>>;
  /** By outbox id or client id. */
  readonly outboxRow: (id: string) => Answer<OutboxChain>;
  /**
   * Retires a dead or pending row for good and queues its message under a new id. The call itself never doubles the
   * message.
   */
  readonly requeue: (request: RequeueRequest) => Answer<Requeued>;
  /**
   * Dismisses a dead row: it stays for the audit and raises no alarm any more. A repeated call answers with the first
   * mark.
   */
  readonly dismiss: (request: DismissRequest) => Answer<Dismissed>;
  /** Makes tombstones of rows that were done at least this many days ago. */
  readonly prune: (request: PruneRequest) => Answer<Pruned>;
  /**
   * Checks that the records of outbox, broker and inbox balance. It may take long: without `timeoutMs` the limit is an
   * hour.
   */
  readonly audit: (options?: { readonly timeoutMs?: number }) => Answer<AuditReport>;

  readonly topics: (query?: TopicsQuery) => Answer<Page<Topic>>;
  /** What waits in the queues of the mesh. */
  readonly queues: (query?: PageQuery) => Answer<Page<QueueItem>>;
  /** Keys of `once` with their newest epochs. An empty page need not be the last one. */
  readonly onceKeys: (query?: OnceQuery) => Answer<Page<OnceItem>>;
  readonly subscribe: (topic: string) => Answer<Subscription>;
  readonly unsubscribe: (topic: string) => Answer<Subscription>;
  /** The same `lease_request_id` again gets the same messages, except those that are settled. */
  readonly lease: (queue: string, request: QueueLeaseBody) => Answer<Lease>;
  readonly ack: (queue: string, request: QueueSettleBody) => Answer<Settlements>;
  readonly nack: (queue: string, request: QueueSettleBody) => Answer<Settlements>;
  /** Messages that were delivered too often. */
  readonly parked: (queue: string, query?: ParkedQuery) => Answer<ParkedPage>;
  readonly peers: (query?: PageQuery) => Answer<Page<KnownPeer>>;
  /** Names to which this host has sent, each with the key that is pinned to it. */
  readonly pins: () => Answer<{ readonly items: readonly Pin[] }>;
  /** One name, with the code to compare. */
  readonly pin: (name: string) => Answer<PinWithCode>;
  /** Pins the key that the name has now; `pubkey` is the key that the caller was shown. */
  readonly trustPeer: (name: string, key: PeerKey) => Answer<Pin>;
  readonly verifyPeer: (name: string, key: PeerKey) => Answer<Pin>;
  /** What this member says about itself; fields that are absent stay unchanged. */
  readonly setProfile: (profile: ProfileInput) => Answer<Profile>;

  readonly version: () => Answer<VersionBody>;
  /** Problems of this host and of the mesh, each with the command that solves it. Asks the broker. */
  readonly findings: () => Answer<FindingsBody>;
  readonly health: () => Answer<HealthBody>;
  readonly compat: () => Answer<CompatBody>;
  /** Metrics in the text format of Prometheus. */
  readonly metrics: () => Answer<string>;
  readonly openapi: () => Answer<Readonly<Record<string, unknown>>>;
  readonly rotateToken: () => Answer<TokenRotation>;
  /** Reads config.toml again. */
  /** Tries to connect now, where the daemon is waiting for its next try. */
  readonly reconnect: () => Answer<{ readonly broker: BrokerStatusBody }>;
  readonly reload: () => Answer<Reloaded>;

  /** Closes idle connections. */
  readonly close: () => void;
};

/** An audit reads every record, and sends nothing before it is done. */
const auditTimeoutMs = 3_600_000;

export function createDaemonClient(options: DaemonClientOptions): DaemonClient {
  const { call, close } = createDaemonCaller(options);
  const inbox: DaemonClient["inbox"] = (query) => call("GET", `/v1/inbox${queryText(query)}`);
  const events: DaemonClient["events"] = (given) => loadEvents(options.socketPath, given);
  return {
    call,
    send: (request, given) => call("POST", "/v1/send", request, idempotencyHeader(given)),
    sendMany: async (sends, given) => (await import("./send-many.ts")).sendMany(call, sends, given),
    post: (request, given) => call("POST", "/v1/topic/post", request, idempotencyHeader(given)),
    message: (id) => call("GET", `/v1/messages/${encodeURIComponent(id)}`),
    waitForStage: async (id, stage, given) =>
      (await import("./wait-for-stage.ts")).waitForStage(
        () => call("GET", `/v1/messages/${encodeURIComponent(id)}`),
        stage,
        given,
      ),
    inbox,
    nextInbox: (request) => call("POST", "/v1/inbox/next", request),
    searchInbox: (query) => call("GET", `/v1/inbox/search${queryText(query)}`),
    waitForInbox: async (query, given) => (await loadArrivals()).waitForInbox({ events, inbox }, query, given),
    followInbox: async function* (query = {}, given = {}) {
      yield* (await loadArrivals()).followInbox({ events, inbox }, query, given);
    },
    markRead: (id) => call("POST", `/v1/inbox/${encodeURIComponent(id)}/read`, {}),
    events,
    ...outboxCalls(call),
    ...meshCalls(call),
    ...controlCalls(call),
    close,
  };
}

function outboxCalls(call: DaemonCall) {
  return {
    outbox: (query) => call("GET", `/v1/outbox${queryText(query)}`),
    outboxRow: (id) => call("GET", `/v1/outbox/${encodeURIComponent(id)}`),
    requeue: (request) => call("POST", "/v1/outbox/requeue", request),
    dismiss: (request) => call("POST", "/v1/outbox/dismiss", request),
    prune: (request) => call("POST", "/v1/outbox/prune", request),
    audit: ({ timeoutMs = auditTimeoutMs } = {}) => call("GET", "/v1/audit", undefined, { timeoutMs }),
  } satisfies Partial<DaemonClient>;
}

function meshCalls(call: DaemonCall) {
  const pinPath = (name: string) => `/v1/pins/${encodeURIComponent(name)}`;
  const queuePath = (queue: string, what: string) => `/v1/queue/${encodeURIComponent(queue)}/${what}`;
  return {
    topics: (query) => call("GET", `/v1/topic/list${queryText(query)}`),
    subscribe: (topic) => call("POST", "/v1/topic/subscribe", { topic }),
    unsubscribe: (topic) => call("POST", "/v1/topic/unsubscribe", { topic }),
    queues: (query) => call("GET", `/v1/queue/list${queryText(query)}`),
    onceKeys: (query) => call("GET", `/v1/once/list${queryText(query)}`),
    lease: (queue, request) => call("POST", queuePath(queue, "lease"), request),
    ack: (queue, request) => call("POST", queuePath(queue, "ack"), request),
    nack: (queue, request) => call("POST", queuePath(queue, "nack"), request),
    parked: (queue, query) => call("GET", `${queuePath(queue, "parked")}${queryText(query)}`),
    peers: (query) => call("GET", `/v1/peers${queryText(query)}`),
    pins: () => call("GET", "/v1/pins"),
    pin: (name) => call("GET", pinPath(name)),
    trustPeer: (name, key) => call("POST", `${pinPath(name)}/trust`, key),
    verifyPeer: (name, key) => call("POST", `${pinPath(name)}/verify`, key),
    setProfile: (profile) => call("POST", "/v1/profile", profile),
  } satisfies Partial<DaemonClient>;
}

function controlCalls(call: DaemonCall) {
  return {
    version: () => call("GET", "/v1/version"),
    health: () => call("GET", "/v1/health"),
    findings: () => call("GET", "/v1/findings"),
    compat: () => call("GET", "/v1/compat"),
    metrics: () => call("GET", "/v1/metrics"),
    openapi: () => call("GET", "/openapi.json"),
    rotateToken: () => call("POST", "/v1/token/rotate", {}),
    reload: () => call("POST", "/v1/reload", {}),
    reconnect: () => call("POST", "/v1/reconnect", {}),
  } satisfies Partial<DaemonClient>;
}

// Most programs that call a daemon wait for nothing, and start sooner without loading these files.
const loadArrivals = () => import("./inbox-arrivals.ts");

async function* loadEvents(socketPath: string, options: EventsOptions | undefined): AsyncGenerator<DaemonEvent> {
  const { readEvents } = await import("./daemon-events.ts");
  yield* readEvents(socketPath, options);
}

/** A key that begins with a quote would be read as a quoted one, so it is sent quoted. */
function idempotencyHeader({ idempotencyKey: key }: SendOptions = {}): CallOptions {
  if (key === undefined) return {};
  const value = key.startsWith('"') ? `"${key.replace(/["\\]/g, "\\$&")}"` : key;
  return { headers: { "idempotency-key": value } };
}

function queryText(query: object | undefined): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) parameters.append(name, String(value));
  }
  return parameters.size === 0 ? "" : `?${parameters}`;
}

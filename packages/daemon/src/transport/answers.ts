// What each route answers, for /openapi.json: the name that a generated client calls it by, the chapter that it stands in,
// and its body by status. A route that is missing here fails a test that says so.
// Why: docs/decisions/0148.
import { type AnswerSchema, answerSchemas } from "./answer-schemas.ts";

export const chapters = {
  messages: "Sending, and where a message is",
  inbox: "What arrived",
  outbox: "What was sent from here",
  topics: "Topics of the mesh",
  queues: "Work that one of many takes",
  peers: "Who is there, and what members say about themselves",
  daemon: "The daemon itself",
} as const;

export type RouteAnswers = {
  /** As the SDK calls it. */
  readonly operationId: string;
  readonly chapter: keyof typeof chapters;
  /** JSON by its schema; a media type where the answer is text. */
  readonly bodies: Readonly<Record<number, AnswerSchema | `text/${string}`>>;
};

const answers = (
  chapter: RouteAnswers["chapter"],
  operationId: string,
  body: AnswerSchema | `text/${string}`,
): RouteAnswers => ({ operationId, chapter, bodies: { 200: body } });

const { named, ...schemas } = answerSchemas;

/** 202: it is queued here. 200: it is a duplicate of one that the broker has. */
const sends = (operationId: string): RouteAnswers => ({
  operationId,
  chapter: "messages",
  bodies: { 200: named("Sent"), 202: named("Sent") },
});

/** Method and path of a route → what it answers. */
export const routeAnswers: Readonly<Record<string, RouteAnswers>> = {
  "POST /v1/send": sends("send"),
  "POST /v1/send/many": answers("messages", "sendMany", schemas.sentMany),
  "POST /v1/topic/post": sends("post"),
  "GET /v1/messages/:id": answers("messages", "message", schemas.messageFacts),
  "GET /v1/audit": answers("messages", "audit", schemas.audit),
  "GET /v1/inbox": answers("inbox", "inbox", schemas.inboxPage),
  "GET /v1/inbox/search": answers("inbox", "searchInbox", schemas.inboxPage),
  "POST /v1/inbox/next": answers("inbox", "nextInbox", schemas.inboxNext),
  "POST /v1/inbox/:id/read": answers("inbox", "markRead", schemas.readMark),
  "GET /v1/events": answers("inbox", "events", "text/event-stream"),
  "GET /v1/outbox": answers("outbox", "outbox", schemas.outboxPage),
  "GET /v1/outbox/:id": answers("outbox", "outboxRow", schemas.outboxChain),
  "POST /v1/outbox/requeue": answers("outbox", "requeue", schemas.requeued),
  "POST /v1/outbox/dismiss": answers("outbox", "dismiss", schemas.dismissed),
  "POST /v1/outbox/prune": answers("outbox", "prune", schemas.pruned),
  "POST /v1/topic/subscribe": answers("topics", "subscribe", named("Subscription")),
  "POST /v1/topic/unsubscribe": answers("topics", "unsubscribe", named("Subscription")),
  "GET /v1/topic/list": answers("topics", "topics", schemas.topicPage),
  "GET /v1/queue/list": answers("queues", "queues", schemas.queuePage),
  "GET /v1/once/list": answers("queues", "onceKeys", schemas.oncePage),
  "POST /v1/queue/:id/lease": answers("queues", "lease", schemas.lease),
  "POST /v1/queue/:id/ack": answers("queues", "ack", named("Settlements")),
  "POST /v1/queue/:id/nack": answers("queues", "nack", named("Settlements")),
  "GET /v1/queue/:id/parked": answers("queues", "parked", schemas.parkedPage),
  "GET /v1/peers": answers("peers", "peers", schemas.peerPage),
  "GET /v1/pins": answers("peers", "pins", schemas.pins),
  "GET /v1/pins/:name": answers("peers", "pin", schemas.pinWithCode),
  "POST /v1/pins/:name/trust": answers("peers", "trustPeer", named("Pin")),
  "POST /v1/pins/:name/verify": answers("peers", "verifyPeer", named("Pin")),
  "POST /v1/profile": answers("peers", "setProfile", schemas.profile),
  "GET /v1/health": answers("daemon", "health", schemas.health),
  "GET /v1/findings": answers("daemon", "findings", schemas.findings),
  "POST /v1/reconnect": answers("daemon", "reconnect", schemas.reconnected),
  "GET /v1/version": answers("daemon", "version", schemas.version),
  "GET /v1/compat": answers("daemon", "compat", schemas.compat),
  "GET /v1/metrics": answers("daemon", "metrics", "text/plain"),
  "POST /v1/token/rotate": answers("daemon", "rotateToken", schemas.tokenRotation),
  "POST /v1/reload": answers("daemon", "reload", schemas.reloaded),
  "GET /openapi.json": answers("daemon", "openapi", schemas.openapi),
};

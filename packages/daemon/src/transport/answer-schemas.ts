// What the local API answers, as JSON Schemas for /openapi.json. They are open: a newer daemon may add fields, and a client
// passes over what it does not know. Tests hold every answer that a daemon gives them against these.
// Why: docs/decisions/0003.
import { findingCodes } from "@claudemesh/client/internal/findings";
import { outboxStatuses } from "@claudemesh/protocol/messages/outbox-row";
import { drainModes } from "../core/drain-state.ts";

export type AnswerSchema = { readonly [keyword: string]: unknown };
type Properties = Readonly<Record<string, AnswerSchema>>;

/** Every property is there, except those that are named. */
const object = (properties: Properties, optional: readonly string[] = []): AnswerSchema => ({
  type: "object",
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  properties,
});
const listOf = (items: AnswerSchema): AnswerSchema => ({ type: "array", items });
const named = (name: string): AnswerSchema => ({ $ref: `#/components/schemas/${name}` });
const orNull = (schema: AnswerSchema): AnswerSchema => ({ anyOf: [schema, { type: "null" }] });
const described = (schema: AnswerSchema, description: string): AnswerSchema => ({ ...schema, description });
/** One of these today; others may come. */
const word = (...values: readonly string[]): AnswerSchema => ({ type: "string", examples: values });

const text: AnswerSchema = { type: "string" };
const yesOrNo: AnswerSchema = { type: "boolean" };
const count: AnswerSchema = { type: "integer", minimum: 0 };
const time = described({ type: "integer" }, "Milliseconds since the epoch.");
const textOrNull: AnswerSchema = { type: ["string", "null"] };
const countOrNull: AnswerSchema = { type: ["integer", "null"] };
const timeOrNull = described({ type: ["integer", "null"] }, "Milliseconds since the epoch.");
const anyObject: AnswerSchema = { type: "object", additionalProperties: true };
const metaOrNull: AnswerSchema = { type: ["object", "null"], additionalProperties: true };
const status: AnswerSchema = { type: "string", enum: outboxStatuses };
const fate = word("unsent", "refused", "unknown", "committed");
const priority = word("now", "next", "low");
const destination = object({ kind: word("dm", "topic", "queue"), ref: text });

const pageOf = (items: AnswerSchema) => object({ items: listOf(items), next_cursor: textOrNull });
const older = described(count, "How many stand before the page, counted up to 1000.");
/** Of a list that can be read from its end as well. */
const pageEitherWay = (items: AnswerSchema) =>
  object(
    {
      items: listOf(items),
      next_cursor: textOrNull,
      prev_cursor: described(textOrNull, "Of `newest` and `before`: the `before` of the page of older ones."),
      older,
    },
    ["prev_cursor", "older"],
  );

const errorBody = {
  ...object(
    {
      error: described(text, "A stable code; docs/errors.md lists them."),
      name: described(text, "The name that some errors have beside their code."),
      message: text,
      retryable: described(yesOrNo, "The same request may succeed later, unchanged."),
      field: described(text, "The field that is wrong, where one is."),
    },
    ["name", "field"],
  ),
  additionalProperties: true,
};

const historyFields: Properties = {
  history_id: count,
  broker_message_id: text,
  client_message_id: text,
  destination,
  sender_pubkey: text,
  envelope_version: text,
  body: text,
  body_base64: text,
  meta: metaOrNull,
  priority,
  reply_to_id: textOrNull,
  accepted_at: time,
};
const historyItemWith = (more: Properties) => object({ ...historyFields, ...more }, ["body", "body_base64"]);

const profileFields: Properties = {
  pubkey: text,
  summary: text,
  status: text,
  visible: yesOrNo,
  avatar: text,
  title: text,
  bio: text,
  capabilities: listOf(text),
};

const chainLink = object({
  outbox_id: text,
  client_message_id: text,
  status,
  fate,
  enqueued_at: time,
  broker_message_id: textOrNull,
  superseded_by: textOrNull,
  accept_duplicate: yesOrNo,
});

const messageFacts = object({
  id: text,
  client_message_id: textOrNull,
  outbox_id: textOrNull,
  inbox_id: textOrNull,
  broker_message_id: textOrNull,
  history_id: countOrNull,
  to: textOrNull,
  destination: orNull(destination),
  sender_pubkey: textOrNull,
  sender_name: textOrNull,
  state: word("queued", "inflight", "stored", "delivered", "read", "expired", "dead", "aborted"),
  fate: orNull(fate),
  attempts: countOrNull,
  next_attempt_at: timeOrNull,
  last_error: textOrNull,
  broker: word("asked", "not_asked", "not_found", "not_reachable"),
  stages: listOf({ ...object({ stage: text, at: timeOrNull }), additionalProperties: true }),
  counts: orNull(object({ unsettled: count, delivered: count, expired: count })),
  deliveries: orNull(
    listOf(object({ recipient_pubkey: text, recipient_name: textOrNull, state: text, settled_at: timeOrNull })),
  ),
  queue: orNull(object({ state: text, deliveries: count, settled_at: timeOrNull })),
  dismissed: orNull(object({ at: time, by: text, why: text })),
  notes: listOf(
    object({
      code: word("dead", "dismissed", "no_recipients", "broker_away", "rate_limited", "membership_ended"),
      text,
    }),
  ),
  chain: listOf(chainLink),
});

const brokerStatus = object(
  {
    state: word("connecting", "online", "offline", "stopped"),
    reason: text,
    detail: text,
    url: text,
    others: listOf(text),
    next_try_at: time,
    broker_key: text,
    note: text,
    expected_key: text,
    seen_key: text,
  },
  ["reason", "detail", "url", "others", "next_try_at", "broker_key", "note", "expected_key", "seen_key"],
);

const health = object(
  {
    status: word("ok", "degraded"),
    mesh: text,
    mesh_id: text,
    member: object({ name: text, pubkey: text }),
    pid: count,
    started_at: time,
    membership: object({ state: word("member", "ended"), since: time }, ["since"]),
    broker: brokerStatus,
    drain: object(
      {
        state: word(...drainModes),
        until: time,
        rate_limited_since: time,
        reason: text,
        detail: text,
      },
      ["until", "rate_limited_since", "reason", "detail"],
    ),
    outbox: object({
      pending: count,
      inflight: count,
      dead: count,
      dismissed: count,
      used_bytes: count,
      max_bytes: count,
    }),
    event_streams: count,
    inbox: object({ unreadable: count, rebuilding: yesOrNo }),
    failpoints: text,
  },
  ["failpoints"],
);

const trust = word("unpinned", "pinned", "verified", "changed");
const pinFields: Properties = {
  name: text,
  trust,
  pubkey: text,
  fingerprint: described(text, "The first 16 hex characters of the key, in fours."),
  pinned_at: timeOrNull,
  verified_at: timeOrNull,
  current_pubkey: described(textOrNull, "Null where no member has the name now, or several have."),
  current_fingerprint: textOrNull,
};

const inboxFields: Properties = {
  id: text,
  client_message_id: text,
  broker_message_id: text,
  history_id: count,
  mesh: text,
  topic: textOrNull,
  sender_pubkey: text,
  sender_name: textOrNull,
  body: textOrNull,
  body_base64: text,
  unreadable: described(
    { enum: [true, "relabelled"] },
    "Why there is no text: true where it could not be opened, relabelled where the broker changed what is said about it.",
  ),
  sealed: described({ type: ["boolean", "null"] }, "Null where it came before this was recorded."),
  from_agent: text,
  to_agent: text,
  meta: metaOrNull,
  priority,
  reply_to_id: textOrNull,
  received_at: time,
  read_at: timeOrNull,
};
const inboxFieldsAtTimes = ["body_base64", "unreadable", "from_agent", "to_agent"];

/** What answers share by name. */
export const componentSchemas: Readonly<Record<string, AnswerSchema>> = {
  Error: errorBody,
  Sent: object(
    {
      client_message_id: text,
      outbox_id: text,
      status: word("queued", "inflight", "done"),
      duplicate: yesOrNo,
      request_fingerprint: described(text, "Its first 16 hex characters."),
      broker_message_id: text,
      history_id: count,
      broker: described(word("away"), "The broker cannot be reached now: the message waits on this host."),
      rate_limited: described(
        object({ since: time, until: time }),
        "The mesh's budget is spent: what is queued waits.",
      ),
      membership_ended_at: described(
        time,
        "This member was removed from the mesh: the message waits until it is too old.",
      ),
      subscribers: described(count, "0: no member but the sender is subscribed to this topic."),
    },
    ["broker_message_id", "history_id", "broker", "rate_limited", "membership_ended_at", "subscribers"],
  ),
  InboxItem: object(inboxFields, inboxFieldsAtTimes),
  OutboxRow: object({
    id: text,
    client_message_id: text,
    to: text,
    destination_kind: text,
    destination_ref: text,
    priority,
    meta: metaOrNull,
    reply_to_id: textOrNull,
    envelope_version: text,
    request_fingerprint: text,
    wire_fingerprint: text,
    status,
    fate,
    enqueued_at: time,
    attempts: count,
    unanswered: count,
    fenced: yesOrNo,
    next_attempt_at: time,
    last_error: textOrNull,
    delivered_at: timeOrNull,
    broker_message_id: textOrNull,
    history_id: countOrNull,
    aborted_at: timeOrNull,
    aborted_by: textOrNull,
    superseded_by: textOrNull,
    accept_duplicate: yesOrNo,
    dismissed_at: timeOrNull,
    dismissed_by: textOrNull,
    dismissed_why: textOrNull,
  }),
  Pin: object(pinFields),
  Settlements: object({ items: listOf(object({ broker_message_id: text, settlement: word("acked", "nacked") })) }),
  Subscription: object({ name: text, subscribed: yesOrNo }),
};

const imbalance = object({ layer: text, id: text, what: text });
const layer = object({
  layer: text,
  total: count,
  classes: { type: "object", additionalProperties: count },
  imbalances: count,
  balanced: yesOrNo,
});

/** The schemas that only one operation answers with. */
export const answerSchemas = {
  sentMany: object({
    results: listOf(object({ status: count, body: { anyOf: [named("Sent"), named("Error")] } })),
  }),
  inboxPage: pageEitherWay(named("InboxItem")),
  inboxNext: object({
    reader: text,
    items: listOf(
      object({ ...inboxFields, again: described(yesOrNo, "It was offered to this reader before.") }, [
        ...inboxFieldsAtTimes,
        "again",
      ]),
    ),
    acknowledge: described(textOrNull, "Give it back with the next request, once this answer was received."),
    position: described(text, "Everything up to this inbox id was acknowledged."),
    waiting: described(count, "How many unread ones come behind these, counted up to 1000."),
    older: described(count, "How many unread ones are older than the reader, counted up to 1000."),
    prev_cursor: described(textOrNull, "The `before` that shows them."),
  }),
  outboxPage: pageEitherWay(named("OutboxRow")),
  outboxChain: object({ row: named("OutboxRow"), chain: listOf(named("OutboxRow")) }),
  requeued: object({
    old: object({ id: text, client_message_id: text, status: word("aborted") }),
    new: object({ outbox_id: text, client_message_id: text }),
  }),
  dismissed: object({
    id: text,
    client_message_id: text,
    status: word("dead"),
    dismissed_at: time,
    dismissed_by: text,
    dismissed_why: text,
  }),
  pruned: object({ tombstones_made: count, more: yesOrNo }),
  readMark: object({ id: text, client_message_id: text, read_at: time }),
  messageFacts,
  audit: object({ layers: listOf(layer), imbalances: listOf(imbalance), balanced: yesOrNo, complete: yesOrNo }),
  topicPage: pageOf(
    object(
      {
        name: text,
        post_policy: word("members", "subscribers"),
        subscribed: yesOrNo,
        subscribers: count,
        messages: count,
        last_message_at: timeOrNull,
      },
      ["subscribers", "messages", "last_message_at"],
    ),
  ),
  queuePage: pageOf(
    object({
      id: text,
      max_deliveries: count,
      created_at: time,
      depth: count,
      leased: count,
      parked: count,
      oldest_at: timeOrNull,
    }),
  ),
  oncePage: pageOf(
    object(
      {
        key: text,
        epoch: count,
        state: word("running", "uncertain", "done", "released"),
        claim_id: text,
        holder_pubkey: text,
        inputs_fingerprint: text,
        claimed_at: time,
        lease_until: time,
        outcome: word("done", "not_done"),
        settled_by: word("record", "resolve"),
        settled_by_pubkey: text,
        settled_at: time,
      },
      ["outcome", "settled_by", "settled_by_pubkey", "settled_at"],
    ),
  ),
  findings: object({
    ok: yesOrNo,
    findings: listOf(object({ code: word(...findingCodes), status: word("warn", "fail"), means: text, fix: text })),
  }),
  reconnected: object({ broker: brokerStatus }),
  lease: object({
    items: listOf(historyItemWith({ deliveries: count })),
    lease_token: textOrNull,
    expires_at: timeOrNull,
  }),
  parkedPage: object({
    items: listOf(historyItemWith({ deliveries: count, parked_at: time })),
    next_after: countOrNull,
  }),
  peerPage: pageOf(
    object({
      ...profileFields,
      name: text,
      role: word("owner", "member"),
      connected_at: time,
      fingerprint: text,
      trust,
    }),
  ),
  pins: object({ items: listOf(named("Pin")) }),
  pinWithCode: object({ ...pinFields, code: described(text, "To be compared with the member by voice.") }),
  profile: object(profileFields),
  health,
  version: object(
    {
      name: text,
      version: text,
      protocol: count,
      mesh: text,
      mesh_id: text,
      member_pubkey: text,
      pid: count,
      membership_ended_at: time,
    },
    ["membership_ended_at"],
  ),
  compat: object({
    daemon_version: text,
    protocol: count,
    current: yesOrNo,
    negotiated: metaOrNull,
    limits: object({ inline_bytes: count, max_age_hours: count }),
  }),
  tokenRotation: object({ rotated_at: time, old_token_valid_until: time }),
  reloaded: object({ applied: listOf(text), needs_restart: listOf(text) }),
  openapi: { ...object({ openapi: text, info: anyObject, paths: anyObject }), additionalProperties: true },
  named,
} as const;

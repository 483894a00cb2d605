// Everything that a member can ask of a broker, in one table: its frame type on the WebSocket, its route on HTTP, and
// the schema of its input. On a frame the fields of the input are beside `type` and `id`; on HTTP they come from path,
// query and body. Handlers are in the broker's packages.
import type { FromSchema, JSONSchema } from "json-schema-to-ts";
import { acceptRequestSchema } from "../messages/accept-request.ts";
import { destinationKinds } from "../messages/addresses.ts";
import { limits } from "../messages/limits.ts";
import { onceOperations } from "./once-operations.ts";
import { registrarOperations } from "./registrar-operations.ts";
import { spaceOperations } from "./spaces-operations.ts";

const clientMessageId = { type: "string", maxLength: limits.clientMessageIdCharacters } as const;
const wireFingerprint = { type: "string", pattern: "^[0-9a-f]{64}$" } as const;
const limit = { type: "integer", minimum: 1, maximum: limits.pageItems } as const;
const after = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const;
const topicName = { type: "string", maxLength: limits.nameCharacters } as const;
const queueId = { type: "string", maxLength: limits.nameCharacters } as const;
const publicKey = { type: "string", pattern: "^[0-9a-f]{64}$" } as const;

/** Free text that every store can hold. */
const text = <const N extends number>(maxLength: N) =>
  ({ type: "string", maxLength, pattern: "^[^\\u0000]*$" }) as const;

const brokerMessageId = { ...text(36), minLength: 36 } as const;
const brokerMessageIds = {
  type: "array",
  minItems: 1,
  maxItems: limits.leaseItems,
  items: brokerMessageId,
} as const;

function input<const R extends readonly string[], const P>(required: R, properties: P) {
  return { type: "object", additionalProperties: false, required, properties } as const;
}

export const fateInputSchema = input(["client_message_id", "fingerprint"], {
  client_message_id: clientMessageId,
  fingerprint: wireFingerprint,
}) satisfies JSONSchema;
export type FateInput = FromSchema<typeof fateInputSchema>;

export const ackInputSchema = input(["history_ids"], {
  history_ids: {
    type: "array",
    minItems: 1,
    maxItems: limits.acksPerFrame,
    items: { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
  },
}) satisfies JSONSchema;
export type AckInput = FromSchema<typeof ackInputSchema>;

export const historyInputSchema = input([], { after, limit, topic: text(limits.nameCharacters) }) satisfies JSONSchema;
export type HistoryInput = FromSchema<typeof historyInputSchema>;

export const pageInputSchema = input([], { after: text(128), limit }) satisfies JSONSchema;
export type PageInput = FromSchema<typeof pageInputSchema>;

export const topicListInputSchema = input([], {
  after: text(128),
  limit,
  /** Include the number of subscribers and messages of each topic; pages may then end before their limit. */
  counts: { type: "boolean" },
}) satisfies JSONSchema;
export type TopicListInput = FromSchema<typeof topicListInputSchema>;

export const inviteInputSchema = input([], {
  expires_in_s: { type: "integer", minimum: 60, maximum: 2_592_000 },
  /** Absent: the new member chooses its name. */
  name: { type: "string", maxLength: limits.nameCharacters },
}) satisfies JSONSchema;
export type InviteInput = FromSchema<typeof inviteInputSchema>;

export const inviteIdInputSchema = input(["invite_id"], {
  invite_id: { ...text(36), minLength: 36 },
}) satisfies JSONSchema;
export type InviteIdInput = FromSchema<typeof inviteIdInputSchema>;

export const tokenInputSchema = input([], {
  label: text(limits.nameCharacters),
}) satisfies JSONSchema;
export type TokenInput = FromSchema<typeof tokenInputSchema>;

export const tokenIdInputSchema = input(["token_id"], {
  token_id: { ...text(36), minLength: 36 },
}) satisfies JSONSchema;
export type TokenIdInput = FromSchema<typeof tokenIdInputSchema>;

export const topicCreateInputSchema = input(["name"], {
  name: topicName,
  post_policy: { type: "string", enum: ["members", "subscribers"] },
}) satisfies JSONSchema;
export type TopicCreateInput = FromSchema<typeof topicCreateInputSchema>;

export const topicInputSchema = input(["name"], { name: topicName }) satisfies JSONSchema;
export type TopicInput = FromSchema<typeof topicInputSchema>;

export const queueCreateInputSchema = input(["queue"], {
  queue: queueId,
  max_deliveries: { type: "integer", minimum: 1, maximum: limits.maxDeliveries },
}) satisfies JSONSchema;
export type QueueCreateInput = FromSchema<typeof queueCreateInputSchema>;

export const queueLeaseInputSchema = input(["queue", "lease_request_id", "max", "lease_s"], {
  queue: queueId,
  lease_request_id: { type: "string", pattern: `^[!-~]{1,${limits.leaseRequestIdCharacters}}$` },
  max: { type: "integer", minimum: 1, maximum: limits.leaseItems },
  lease_s: { type: "integer", minimum: 1, maximum: limits.leaseSeconds },
}) satisfies JSONSchema;
export type QueueLeaseInput = FromSchema<typeof queueLeaseInputSchema>;

export const queueSettleInputSchema = input(["queue", "lease_token", "broker_message_ids"], {
  queue: queueId,
  lease_token: { ...text(36), minLength: 36 },
  broker_message_ids: brokerMessageIds,
}) satisfies JSONSchema;
export type QueueSettleInput = FromSchema<typeof queueSettleInputSchema>;

export const queueParkedInputSchema = input(["queue"], { queue: queueId, after, limit }) satisfies JSONSchema;
export type QueueParkedInput = FromSchema<typeof queueParkedInputSchema>;

export const queueReviveInputSchema = input(["queue", "broker_message_ids"], {
  queue: queueId,
  broker_message_ids: brokerMessageIds,
}) satisfies JSONSchema;
export type QueueReviveInput = FromSchema<typeof queueReviveInputSchema>;

export const messageStateInputSchema = input(["broker_message_id"], {
  broker_message_id: brokerMessageId,
  after: publicKey,
  limit,
}) satisfies JSONSchema;
export type MessageStateInput = FromSchema<typeof messageStateInputSchema>;

export const destinationStateInputSchema = input(["kind", "ref"], {
  kind: { type: "string", enum: destinationKinds },
  ref: text(limits.nameCharacters),
}) satisfies JSONSchema;
export type DestinationStateInput = FromSchema<typeof destinationStateInputSchema>;

export const mentionsInputSchema = input([], { of: publicKey, after, limit }) satisfies JSONSchema;
export type MentionsInput = FromSchema<typeof mentionsInputSchema>;

export const searchInputSchema = input(["q"], {
  q: { type: "string", minLength: 1, maxLength: limits.searchCharacters },
  after,
  limit,
}) satisfies JSONSchema;
export type SearchInput = FromSchema<typeof searchInputSchema>;

export const profileInputSchema = input([], {
  summary: text(limits.summaryCharacters),
  status: text(limits.statusCharacters),
  visible: { type: "boolean" },
  avatar: text(limits.avatarCharacters),
  title: text(limits.titleCharacters),
  bio: text(limits.bioCharacters),
  capabilities: { type: "array", maxItems: limits.capabilities, items: text(limits.capabilityCharacters) },
}) satisfies JSONSchema;
export type ProfileInput = FromSchema<typeof profileInputSchema>;

const webhookId = { type: "string", maxLength: limits.nameCharacters } as const;

export const webhookCreateInputSchema = input(["webhook", "url"], {
  webhook: webhookId,
  url: text(limits.webhookUrlCharacters),
  /** Absent: every topic. */
  topics: { type: "array", minItems: 1, maxItems: limits.webhookTopics, uniqueItems: true, items: topicName },
  /** Absent: the broker makes one. */
  secret: {
    type: "string",
    pattern: `^[!-~]{${limits.webhookSecretCharactersMin},${limits.webhookSecretCharactersMax}}$`,
  },
}) satisfies JSONSchema;
export type WebhookCreateInput = FromSchema<typeof webhookCreateInputSchema>;

export const webhookInputSchema = input(["webhook"], { webhook: webhookId }) satisfies JSONSchema;
export type WebhookInput = FromSchema<typeof webhookInputSchema>;

export const webhookDeliveriesInputSchema = input(["webhook"], {
  webhook: webhookId,
  state: { type: "string", enum: ["pending", "delivered", "parked", "expired"] },
  after,
  limit,
}) satisfies JSONSchema;
export type WebhookDeliveriesInput = FromSchema<typeof webhookDeliveriesInputSchema>;

const historyId = { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER } as const;

/** At most one of the two; with neither, everything that is parked is replayed. */
export const webhookReplayInputSchema = input(["webhook"], {
  webhook: webhookId,
  history_ids: { type: "array", minItems: 1, maxItems: limits.pageItems, items: historyId },
  from_history_id: historyId,
}) satisfies JSONSchema;
export type WebhookReplayInput = FromSchema<typeof webhookReplayInputSchema>;

export const memberInputSchema = input(["pubkey"], { pubkey: publicKey }) satisfies JSONSchema;
export type MemberInput = FromSchema<typeof memberInputSchema>;

export const memberRoleInputSchema = input(["pubkey", "role"], {
  pubkey: publicKey,
  role: { type: "string", enum: ["owner", "member"] },
}) satisfies JSONSchema;
export type MemberRoleInput = FromSchema<typeof memberRoleInputSchema>;

/** mesh-settings.ts defines the keys and their values; null returns a key to its default. */
export const meshSetInputSchema = input(["key", "value"], {
  key: text(limits.nameCharacters),
  value: { type: ["string", "integer", "null"], maxLength: limits.nameCharacters },
}) satisfies JSONSchema;
export type MeshSetInput = FromSchema<typeof meshSetInputSchema>;

export const emptyInputSchema = input([], {}) satisfies JSONSchema;
export type EmptyInput = FromSchema<typeof emptyInputSchema>;

export type OperationSpec = {
  /** The path below /v1/meshes/:mesh; undefined: the operation exists only on the WebSocket. */
  readonly http?: {
    readonly method: "GET" | "POST" | "PUT" | "DELETE";
    readonly path: string;
    /**
     * Fields with another name in a body than in a frame, where `id` is the request's: name in a body → name in a
     * frame.
     */
    readonly names?: Readonly<Record<string, string>>;
  };
  readonly input: JSONSchema & { readonly properties: Readonly<Record<string, unknown>> };
  /** On the WebSocket it carries the member's signature over its content, so that no relay can insert it. */
  readonly signed?: true;
  /** Limits of this operation's request, where they are larger than those of all others. */
  readonly large?: { readonly bytes: number; readonly jsonDepth: number };
};

export const operations = {
  send: { http: { method: "POST", path: "/messages" }, input: acceptRequestSchema },
  fate: { http: { method: "GET", path: "/messages/by-client-id/:client_message_id" }, input: fateInputSchema },
  fence: { http: { method: "POST", path: "/messages/by-client-id/:client_message_id/fence" }, input: fateInputSchema },
  "message.state": { http: { method: "GET", path: "/messages/:broker_message_id" }, input: messageStateInputSchema },
  "destination.state": {
    http: { method: "GET", path: "/destinations/:kind/:ref" },
    input: destinationStateInputSchema,
  },
  history: { http: { method: "GET", path: "/history" }, input: historyInputSchema },
  search: { http: { method: "GET", path: "/search" }, input: searchInputSchema },
  mentions: { http: { method: "GET", path: "/mentions" }, input: mentionsInputSchema },
  /** Settles deliveries whose inbox rows are durable. Only the connection of a receiver has deliveries to settle. */
  ack: { input: ackInputSchema },
  "queue.create": { http: { method: "POST", path: "/queues", names: { id: "queue" } }, input: queueCreateInputSchema },
  "queue.list": { http: { method: "GET", path: "/queues" }, input: pageInputSchema },
  "queue.lease": { http: { method: "POST", path: "/queues/:queue/lease" }, input: queueLeaseInputSchema },
  "queue.ack": { http: { method: "POST", path: "/queues/:queue/ack" }, input: queueSettleInputSchema },
  "queue.nack": { http: { method: "POST", path: "/queues/:queue/nack" }, input: queueSettleInputSchema },
  "queue.parked": { http: { method: "GET", path: "/queues/:queue/parked" }, input: queueParkedInputSchema },
  "queue.revive": { http: { method: "POST", path: "/queues/:queue/revive" }, input: queueReviveInputSchema },
  "mesh.health": { http: { method: "GET", path: "/health" }, input: emptyInputSchema },
  "members.list": { http: { method: "GET", path: "/members" }, input: pageInputSchema },
  "peers.list": { http: { method: "GET", path: "/peers" }, input: pageInputSchema },
  "profile.set": { http: { method: "POST", path: "/profile" }, input: profileInputSchema },
  "member.revoke": { http: { method: "DELETE", path: "/members/:pubkey" }, input: memberInputSchema, signed: true },
  "member.role": { http: { method: "PUT", path: "/members/:pubkey/role" }, input: memberRoleInputSchema, signed: true },
  "mesh.settings": { http: { method: "GET", path: "/settings" }, input: emptyInputSchema },
  "mesh.set": { http: { method: "PUT", path: "/settings" }, input: meshSetInputSchema, signed: true },
  "invite.create": { http: { method: "POST", path: "/invites" }, input: inviteInputSchema, signed: true },
  "invite.list": { http: { method: "GET", path: "/invites" }, input: pageInputSchema },
  "invite.revoke": { http: { method: "DELETE", path: "/invites/:invite_id" }, input: inviteIdInputSchema },
  /** Refused over HTTP: a leaked token must not be able to make further tokens that outlive it. */
  "token.create": { http: { method: "POST", path: "/tokens" }, input: tokenInputSchema, signed: true },
  "token.list": { http: { method: "GET", path: "/tokens" }, input: pageInputSchema },
  "token.revoke": { http: { method: "DELETE", path: "/tokens/:token_id" }, input: tokenIdInputSchema },
  "topic.create": { http: { method: "POST", path: "/topics" }, input: topicCreateInputSchema },
  "topic.list": { http: { method: "GET", path: "/topics" }, input: topicListInputSchema },
  "topic.delete": { http: { method: "DELETE", path: "/topics/:name" }, input: topicInputSchema, signed: true },
  "topic.subscribe": { http: { method: "PUT", path: "/topics/:name/subscription" }, input: topicInputSchema },
  "topic.unsubscribe": { http: { method: "DELETE", path: "/topics/:name/subscription" }, input: topicInputSchema },
  "webhook.create": {
    http: { method: "POST", path: "/webhooks", names: { id: "webhook" } },
    input: webhookCreateInputSchema,
    signed: true,
  },
  "webhook.list": { http: { method: "GET", path: "/webhooks" }, input: pageInputSchema },
  "webhook.delete": {
    http: { method: "DELETE", path: "/webhooks/:webhook" },
    input: webhookInputSchema,
    signed: true,
  },
  "webhook.deliveries": {
    http: { method: "GET", path: "/webhooks/:webhook/deliveries" },
    input: webhookDeliveriesInputSchema,
  },
  "webhook.replay": { http: { method: "POST", path: "/webhooks/:webhook/replay" }, input: webhookReplayInputSchema },
  ...onceOperations,
  ...registrarOperations,
  ...spaceOperations,
} as const satisfies Record<string, OperationSpec>;

export type OperationName = keyof typeof operations;

/** Whether its frame carries a signature; see `operationBytes`. */
export function isSignedOperation(name: OperationName): boolean {
  const { signed }: OperationSpec = operations[name];
  return signed === true;
}

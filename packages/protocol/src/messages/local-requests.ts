// What a program asks of the daemon on its host, besides a send and a requeue: the schemas of the smaller bodies of its
// local API. The daemon checks requests against them, and the types of the SDK come from them.
import type { FromSchema, JSONSchema } from "json-schema-to-ts";
import { queueLeaseInputSchema, queueSettleInputSchema } from "../wire/operations.ts";
import { limits } from "./limits.ts";
import { namePatternText } from "./names.ts";
import { sendRequestSchema } from "./send-request.ts";

const { to: address, ...content } = sendRequestSchema.properties;

/** A send to a topic, by its name. */
export const topicPostSchema = {
  type: "object",
  additionalProperties: false,
  required: ["topic"],
  properties: { topic: address, ...content },
} as const satisfies JSONSchema;
export type TopicPost = FromSchema<typeof topicPostSchema>;

export const topicRequestSchema = {
  type: "object",
  additionalProperties: false,
  required: ["topic"],
  properties: { topic: { type: "string", maxLength: 128 } },
} as const satisfies JSONSchema;
export type TopicRequest = FromSchema<typeof topicRequestSchema>;

export const dismissRequestSchema = {
  type: "object",
  additionalProperties: false,
  required: ["id", "why"],
  properties: {
    id: { type: "string", minLength: 1, maxLength: limits.clientMessageIdCharacters },
    why: { type: "string", minLength: 1, maxLength: limits.dismissWhyCharacters, pattern: "^[^\\u0000]*$" },
  },
} as const satisfies JSONSchema;
export type DismissRequest = FromSchema<typeof dismissRequestSchema>;

/** What a reader has not acknowledged. `acknowledge` is the value from an answer that the reader has received. */
export const inboxNextRequestSchema = {
  type: "object",
  additionalProperties: false,
  required: ["reader"],
  properties: {
    reader: { type: "string", pattern: namePatternText },
    acknowledge: { type: "string", pattern: "^[0-7][0-9A-HJKMNP-TV-Z]{25}$" },
    limit: { type: "integer", minimum: 1, maximum: limits.pageItems },
  },
} as const satisfies JSONSchema;
export type InboxNextRequest = FromSchema<typeof inboxNextRequestSchema>;

/** The key that the caller was shown. If the peer has another key by now, that one is not trusted by mistake. */
export const peerKeySchema = {
  type: "object",
  additionalProperties: false,
  required: ["pubkey"],
  properties: { pubkey: { type: "string", maxLength: 64 } },
} as const satisfies JSONSchema;
export type PeerKey = FromSchema<typeof peerKeySchema>;

export const pruneRequestSchema = {
  type: "object",
  additionalProperties: false,
  required: ["older_than_days"],
  properties: { older_than_days: { type: "integer", minimum: 0, maximum: 36_500 } },
} as const satisfies JSONSchema;
export type PruneRequest = FromSchema<typeof pruneRequestSchema>;

// The same fields as at the broker, without the queue, which the route's path names.
const { queue: _leased, ...lease } = queueLeaseInputSchema.properties;
const { queue: _settled, ...settle } = queueSettleInputSchema.properties;

export const queueLeaseBodySchema = {
  type: "object",
  additionalProperties: false,
  required: ["lease_request_id", "max", "lease_s"],
  properties: lease,
} as const satisfies JSONSchema;
export type QueueLeaseBody = FromSchema<typeof queueLeaseBodySchema>;

export const queueSettleBodySchema = {
  type: "object",
  additionalProperties: false,
  required: ["lease_token", "broker_message_ids"],
  properties: settle,
} as const satisfies JSONSchema;
export type QueueSettleBody = FromSchema<typeof queueSettleBodySchema>;

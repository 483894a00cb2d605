// Everything a member can ask of a broker, once: its frame type on the WebSocket, its route on HTTP, and the schema
// of its input. On a frame the input's fields stand beside `type` and `id`; on HTTP they come from path, query and
// body. Handlers live in the broker's packages.
import type { FromSchema, JSONSchema } from "json-schema-to-ts";
import { acceptRequestSchema } from "../messages/accept-request.ts";
import { limits } from "../messages/limits.ts";

const clientMessageId = { type: "string", maxLength: limits.clientMessageIdCharacters } as const;
const wireFingerprint = { type: "string", pattern: "^[0-9a-f]{64}$" } as const;
const limit = { type: "integer", minimum: 1, maximum: limits.pageItems } as const;
const after = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const;
const topicName = { type: "string", maxLength: limits.nameCharacters } as const;

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

export const historyInputSchema = input([], { after, limit, topic: topicName }) satisfies JSONSchema;
export type HistoryInput = FromSchema<typeof historyInputSchema>;

export const pageInputSchema = input([], { after: { type: "string", maxLength: 128 }, limit }) satisfies JSONSchema;
export type PageInput = FromSchema<typeof pageInputSchema>;

export const inviteInputSchema = input([], {
  expires_in_s: { type: "integer", minimum: 60, maximum: 2_592_000 },
}) satisfies JSONSchema;
export type InviteInput = FromSchema<typeof inviteInputSchema>;

export const tokenInputSchema = input([], {
  label: { type: "string", maxLength: limits.nameCharacters },
}) satisfies JSONSchema;
export type TokenInput = FromSchema<typeof tokenInputSchema>;

export const tokenIdInputSchema = input(["token_id"], {
  token_id: { type: "string", minLength: 36, maxLength: 36 },
}) satisfies JSONSchema;
export type TokenIdInput = FromSchema<typeof tokenIdInputSchema>;

export const topicCreateInputSchema = input(["name"], {
  name: topicName,
  post_policy: { type: "string", enum: ["members", "subscribers"] },
}) satisfies JSONSchema;
export type TopicCreateInput = FromSchema<typeof topicCreateInputSchema>;

export const topicInputSchema = input(["name"], { name: topicName }) satisfies JSONSchema;
export type TopicInput = FromSchema<typeof topicInputSchema>;

export const emptyInputSchema = input([], {}) satisfies JSONSchema;
export type EmptyInput = FromSchema<typeof emptyInputSchema>;

export type OperationSpec = {
  /** Below /v1/meshes/:mesh; undefined: only on the WebSocket. */
  readonly http?: { readonly method: "GET" | "POST" | "PUT" | "DELETE"; readonly path: string };
  readonly input: JSONSchema & { readonly properties: Readonly<Record<string, unknown>> };
};

export const operations = {
  send: { http: { method: "POST", path: "/messages" }, input: acceptRequestSchema },
  fate: { http: { method: "GET", path: "/messages/by-client-id/:client_message_id" }, input: fateInputSchema },
  fence: { http: { method: "POST", path: "/messages/by-client-id/:client_message_id/fence" }, input: fateInputSchema },
  history: { http: { method: "GET", path: "/history" }, input: historyInputSchema },
  /** Settles deliveries whose inbox rows are durable. Only a receiver's connection has deliveries to settle. */
  ack: { input: ackInputSchema },
  "members.list": { http: { method: "GET", path: "/members" }, input: pageInputSchema },
  "invite.create": { http: { method: "POST", path: "/invites" }, input: inviteInputSchema },
  "token.create": { http: { method: "POST", path: "/tokens" }, input: tokenInputSchema },
  "token.list": { http: { method: "GET", path: "/tokens" }, input: pageInputSchema },
  "token.revoke": { http: { method: "DELETE", path: "/tokens/:token_id" }, input: tokenIdInputSchema },
  "topic.create": { http: { method: "POST", path: "/topics" }, input: topicCreateInputSchema },
  "topic.list": { http: { method: "GET", path: "/topics" }, input: pageInputSchema },
  "topic.subscribe": { http: { method: "PUT", path: "/topics/:name/subscription" }, input: topicInputSchema },
  "topic.unsubscribe": { http: { method: "DELETE", path: "/topics/:name/subscription" }, input: topicInputSchema },
} as const satisfies Record<string, OperationSpec>;

export type OperationName = keyof typeof operations;

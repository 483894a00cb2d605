// An operator's request to a daemon to give a stuck row a new id: the schema of POST /v1/outbox/requeue, and the
// reading and applying of a patch. The daemon decides whether the row may be requeued.
import type { FromSchema, JSONSchema } from "json-schema-to-ts";
import { checkReplyToId, type Meta, type Priority, priorities, readMeta } from "./envelope.ts";
import { limits } from "./limits.ts";
import { readBody, type SendContent } from "./send-request.ts";

export const payloadPatchSchema = {
  type: "object",
  additionalProperties: false,
  minProperties: 1,
  properties: {
    message: { type: "string" },
    message_base64: { type: "string" },
    meta: { type: ["object", "null"] },
    priority: { type: "string", enum: priorities },
    reply_to_id: { type: ["string", "null"], maxLength: limits.replyToIdCharacters },
  },
} as const satisfies JSONSchema;

export const requeueRequestSchema = {
  type: "object",
  additionalProperties: false,
  required: ["id"],
  properties: {
    id: { type: "string", minLength: 1, maxLength: limits.clientMessageIdCharacters },
    new_client_id: { type: "string" },
    patch_payload: payloadPatchSchema,
    accept_duplicate: { type: "boolean" },
  },
} as const satisfies JSONSchema;

export type PayloadPatch = FromSchema<typeof payloadPatchSchema>;
export type RequeueRequest = FromSchema<typeof requeueRequestSchema>;

/** A patch as values that are safe to hash. A field that is undefined leaves its value unchanged. */
export type ContentPatch = {
  readonly body: Uint8Array | undefined;
  readonly priority: Priority | undefined;
  /** "" removes the meta. */
  readonly canonicalMeta: string | undefined;
  /** Null removes the reference. */
  readonly replyToId: string | null | undefined;
};

export function readPatch(patch: PayloadPatch): ContentPatch {
  const { message, message_base64, meta, priority, reply_to_id } = patch;
  checkReplyToId(reply_to_id ?? undefined);
  const hasBody = message !== undefined || message_base64 !== undefined;
  return {
    body: hasBody ? readBody(message, message_base64, "message") : undefined,
    priority,
    canonicalMeta: meta === undefined ? undefined : readMeta((meta ?? undefined) as Meta | undefined),
    replyToId: reply_to_id,
  };
}

export function applyPatch(content: SendContent, patch: ContentPatch): SendContent {
  return {
    body: patch.body ?? content.body,
    priority: patch.priority ?? content.priority,
    canonicalMeta: patch.canonicalMeta ?? content.canonicalMeta,
    replyToId: patch.replyToId === undefined ? content.replyToId : (patch.replyToId ?? undefined),
  };
}

// What a program asks of its daemon: the schemas of POST /v1/send and of many sends at once, and the reading of a send
// into values that are safe to hash. The daemon resolves `to` and seals.
import type { FromSchema, JSONSchema } from "json-schema-to-ts";
import { decodeBase64 } from "../encoding/base64.ts";
import { encodeUtf8 } from "../encoding/utf8.ts";
import { MeshError } from "../errors/errors.ts";
import { checkReplyToId, defaultPriority, type Meta, type Priority, priorities, readMeta } from "./envelope.ts";
import { limits } from "./limits.ts";

export const sendRequestSchema = {
  type: "object",
  additionalProperties: false,
  required: ["to"],
  properties: {
    to: { type: "string", maxLength: limits.addressCharacters },
    message: { type: "string" },
    message_base64: { type: "string" },
    priority: { type: "string", enum: priorities },
    meta: { type: "object" },
    reply_to_id: { type: "string", maxLength: limits.replyToIdCharacters },
    client_message_id: { type: "string" },
  },
} as const satisfies JSONSchema;

export type SendRequest = FromSchema<typeof sendRequestSchema>;

/**
 * Many sends in one request. A lost answer leaves all of them undecided, so each names the id with which to ask again.
 */
export const sendManyRequestSchema = {
  type: "object",
  additionalProperties: false,
  required: ["sends"],
  properties: {
    sends: {
      type: "array",
      minItems: 1,
      maxItems: limits.sendsPerRequest,
      items: { ...sendRequestSchema, required: ["to", "client_message_id"] },
    },
  },
} as const satisfies JSONSchema;

export type SendManyRequest = FromSchema<typeof sendManyRequestSchema>;
/** A send whose identity is known before it is transmitted, so that the caller can ask again whatever happens. */
export type IdentifiedSend = SendManyRequest["sends"][number];

export type SendContent = {
  readonly body: Uint8Array;
  readonly priority: Priority;
  readonly canonicalMeta: string;
  readonly replyToId: string | undefined;
};

export function readSendContent(request: Omit<SendRequest, "to" | "client_message_id">): SendContent {
  checkReplyToId(request.reply_to_id);
  return {
    body: readBody(request.message, request.message_base64, "message"),
    priority: request.priority ?? defaultPriority,
    canonicalMeta: readMeta(request.meta as Meta | undefined),
    replyToId: request.reply_to_id,
  };
}

/** Exactly one of the text field and its base64 counterpart, as bytes. */
export function readBody(text: string | undefined, base64: string | undefined, field: string): Uint8Array {
  if ((text === undefined) === (base64 === undefined)) {
    throw new MeshError("invalid_request", `Give exactly one of ${field} and ${field}_base64.`, { field });
  }
  if (text !== undefined) {
    // Encoding would replace half a surrogate pair, and two different texts would have the same bytes.
    if (!text.isWellFormed()) throw new MeshError("lone_surrogate", undefined, { field });
    return encodeUtf8(text);
  }
  const bytes = decodeBase64(base64 ?? "");
  if (bytes !== undefined) return bytes;
  throw new MeshError("invalid_request", `${field}_base64 is not canonical base64.`, { field: `${field}_base64` });
}

// What a broker is asked to accept: the schema of one send on HTTP and WebSocket, and the reading of it into the
// envelope whose fingerprint the broker recomputes.
import type { FromSchema, JSONSchema } from "json-schema-to-ts";
import { MeshError } from "../errors/errors.ts";
import { checkDestination, destinationKinds } from "./addresses.ts";
import { isClientMessageId } from "./client-message-id.ts";
import {
  checkReplyToId,
  defaultPriority,
  type Envelope,
  envelopeVersions,
  type Meta,
  priorities,
  readMentions,
  readMeta,
} from "./envelope.ts";
import { limits } from "./limits.ts";
import { readBody } from "./send-request.ts";

export const acceptRequestSchema = {
  type: "object",
  additionalProperties: false,
  required: ["client_message_id", "destination"],
  properties: {
    client_message_id: { type: "string" },
    destination: {
      type: "object",
      additionalProperties: false,
      required: ["kind", "ref"],
      properties: {
        kind: { type: "string", enum: destinationKinds },
        ref: { type: "string", maxLength: limits.nameCharacters },
      },
    },
    body: { type: "string" },
    body_base64: { type: "string" },
    envelope_version: { type: "string", enum: envelopeVersions },
    priority: { type: "string", enum: priorities },
    meta: { type: "object" },
    reply_to_id: { type: "string", maxLength: limits.replyToIdCharacters },
  },
} as const satisfies JSONSchema;

export type AcceptRequest = FromSchema<typeof acceptRequestSchema>;

export type ReadAccept = {
  readonly clientMessageId: string;
  readonly envelope: Envelope;
  readonly mentions: readonly string[];
};

/** Size against the broker's limit is not checked here: a committed retry is answered before any limit. */
export function readAcceptRequest(request: AcceptRequest): ReadAccept {
  if (!isClientMessageId(request.client_message_id)) throw new MeshError("invalid_client_message_id");
  checkDestination(request.destination);
  checkReplyToId(request.reply_to_id);
  const version = request.envelope_version ?? "1";
  if (version === "2" && request.destination.kind !== "dm") {
    throw new MeshError("invalid_request", "Only direct messages are sealed.", { field: "envelope_version" });
  }
  const meta = request.meta as Meta | undefined;
  return {
    clientMessageId: request.client_message_id,
    envelope: {
      version,
      destination: request.destination,
      replyToId: request.reply_to_id,
      priority: request.priority ?? defaultPriority,
      canonicalMeta: readMeta(meta),
      body: readBody(request.body, request.body_base64, "body"),
    },
    mentions: readMentions(meta),
  };
}

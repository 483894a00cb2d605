// A request to a broker to accept a message: the schema of one send on HTTP and WebSocket, the reading of it into the
// envelope whose fingerprint the broker recomputes, and the writing of it.
import type { FromSchema, JSONSchema } from "json-schema-to-ts";
import { encodeBase64 } from "../encoding/base64.ts";
import { MeshError } from "../errors/errors.ts";
import { type JsonObject, parseOwnJsonText } from "../json/strict-json.ts";
import { bodyFields } from "../wire/history-item.ts";
import { checkDestination, destinationKinds } from "./addresses.ts";
import { isClientMessageId } from "./client-message-id.ts";
import {
  checkReplyToId,
  defaultPriority,
  type Envelope,
  envelopeVersions,
  isSealedVersion,
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

/** The size is not compared with the broker's limit here, because a committed retry is answered before any limit. */
export function readAcceptRequest(request: AcceptRequest): ReadAccept {
  if (!isClientMessageId(request.client_message_id)) throw new MeshError("invalid_client_message_id");
  checkDestination(request.destination);
  checkReplyToId(request.reply_to_id);
  const version = request.envelope_version ?? "1";
  if (isSealedVersion(version) && request.destination.kind !== "dm") {
    throw new MeshError("invalid_request", "Only direct messages are sealed.", { field: "envelope_version" });
  }
  const meta = request.meta as Meta | undefined;
  if (version === "3" && meta !== undefined) {
    throw new MeshError("invalid_request", "The meta of a sealed message belongs inside its box.", { field: "meta" });
  }
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

/** Escaping can make a text six times as long, base64 by a third: above this size a frame might not hold the text. */
const textBytesMax = 131_072;

/** Writes a request that is read as this envelope again, so that both sides compute the same fingerprint. */
export function writeAcceptRequest(clientMessageId: string, envelope: Envelope): AcceptRequest {
  const { version, destination, priority, replyToId, canonicalMeta, body } = envelope;
  const asBase64 = isSealedVersion(version) || body.length > textBytesMax;
  return {
    client_message_id: clientMessageId,
    destination,
    envelope_version: version,
    priority,
    ...(asBase64 ? { body_base64: encodeBase64(body) } : bodyFields(body, false)),
    ...(canonicalMeta === "" ? {} : { meta: parseOwnJsonText(canonicalMeta) as JsonObject }),
    ...(replyToId === undefined ? {} : { reply_to_id: replyToId }),
  };
}

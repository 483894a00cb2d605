// An outbox row as the broker is asked to accept it. The broker recomputes the wire fingerprint from exactly this.

import { encodeBase64 } from "@claudemesh/protocol/encoding/base64";
import { type JsonObject, parseOwnJsonText } from "@claudemesh/protocol/json";
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { bodyFields } from "@claudemesh/protocol/wire/history-item";
import type { ClaimedRow } from "./outbox-row.ts";

/** Text can grow sixfold when it is escaped, base64 by a third: above this, a frame might not hold the text. */
const textBytesMax = 131_072;

export function sendFrame(row: ClaimedRow): AcceptRequest {
  const asBase64 = row.envelopeVersion === "2" || row.payload.length > textBytesMax;
  return {
    client_message_id: row.clientMessageId,
    destination: row.destination,
    envelope_version: row.envelopeVersion,
    priority: row.priority,
    ...(asBase64 ? { body_base64: encodeBase64(row.payload) } : bodyFields(row.payload, false)),
    ...(row.canonicalMeta === "" ? {} : { meta: parseOwnJsonText(row.canonicalMeta) as JsonObject }),
    ...(row.replyToId === undefined ? {} : { reply_to_id: row.replyToId }),
  };
}

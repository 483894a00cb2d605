// An outbox row as the broker is asked to accept it. The broker recomputes the wire fingerprint from exactly this.
import { type AcceptRequest, writeAcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import type { ClaimedRow } from "./outbox-row.ts";

export function sendFrame(row: ClaimedRow): AcceptRequest {
  const { clientMessageId, envelopeVersion: version, destination, priority, replyToId, payload: body } = row;
  // The meta of version "3" is in the box, and in no frame.
  const canonicalMeta = version === "3" ? "" : row.canonicalMeta;
  return writeAcceptRequest(clientMessageId, { version, destination, priority, replyToId, canonicalMeta, body });
}

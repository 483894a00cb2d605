// What the daemon knows about one send, as plain values: the row that is inserted, the row that is tried, the row that
// is shown. States and transitions are the protocol's; performing them is the store's.
import type { OutboxItem } from "@claudemesh/client/daemon";
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import { type AcceptRequest, writeAcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import type { Destination } from "@claudemesh/protocol/messages/addresses";
import type { EnvelopeVersion, Meta, Priority } from "@claudemesh/protocol/messages/envelope";
import { fateOf } from "@claudemesh/protocol/messages/fate";
import { fingerprintPrefix } from "@claudemesh/protocol/messages/fingerprint";
import type { OutboxStatus } from "@claudemesh/protocol/messages/outbox-row";
import type { ExistingSend } from "@claudemesh/protocol/messages/send-decision";

/** An accepted send, before it has an answer. `payload` is what leaves the host, sealed where it is a direct message. */
export type NewOutboxRow = {
  readonly id: string;
  readonly clientMessageId: string;
  readonly requestFingerprint: Uint8Array;
  readonly wireFingerprint: Uint8Array;
  readonly to: string;
  readonly destination: Destination;
  readonly priority: Priority;
  readonly canonicalMeta: string;
  readonly replyToId: string | undefined;
  readonly envelopeVersion: EnvelopeVersion;
  readonly payload: Uint8Array;
  readonly enqueuedAt: number;
};

/** What an id already stands for. */
export type StoredSend = ExistingSend & { readonly to: string; readonly destination: Destination };

/** A row that was made inflight for one try. */
export type ClaimedRow = {
  readonly id: string;
  readonly clientMessageId: string;
  /** Tries that ended before this one, and those among them that nothing answered. */
  readonly attempts: number;
  readonly unanswered: number;
  readonly destination: Destination;
  readonly priority: Priority;
  readonly canonicalMeta: string;
  readonly replyToId: string | undefined;
  readonly envelopeVersion: EnvelopeVersion;
  readonly payload: Uint8Array;
  readonly enqueuedAt: number;
};

/** A new row that was inflight from the start. */
export function firstTryOf(row: NewOutboxRow): ClaimedRow {
  const { id, clientMessageId, destination, priority, canonicalMeta, replyToId, envelopeVersion, payload } = row;
  const content = { destination, priority, canonicalMeta, replyToId, envelopeVersion, payload };
  return { id, clientMessageId, attempts: 0, unanswered: 0, ...content, enqueuedAt: row.enqueuedAt };
}

/** A row as the broker is asked to accept it. The broker recomputes the wire fingerprint from exactly this. */
export function sendFrame(row: ClaimedRow): AcceptRequest {
  const { clientMessageId, envelopeVersion: version, destination, priority, replyToId, payload: body } = row;
  // The meta of version "3" is inside the sealed payload, and in no frame.
  const canonicalMeta = version === "3" ? "" : row.canonicalMeta;
  return writeAcceptRequest(clientMessageId, { version, destination, priority, replyToId, canonicalMeta, body });
}

/**
 * The broker took this try as the first of its id. Whether it may have taken an earlier one too, which nothing answered, and
 * have forgotten it since: then the message is there twice. `forgottenBefore`: see fenceProvesNothingBefore.
 */
export function mayBeStoredTwice(row: ClaimedRow, forgottenBefore: number): boolean {
  return row.unanswered > 0 && row.enqueuedAt <= forgottenBefore;
}

/** A row whose fate is asked of the broker. */
export type FenceTarget = {
  readonly id: string;
  readonly clientMessageId: string;
  readonly wireFingerprint: Uint8Array;
  readonly enqueuedAt: number;
  readonly status: OutboxStatus;
  readonly attempts: number;
  readonly unanswered: number;
  readonly fenced: boolean;
};

/** Every column but the payload, as the store reads it. */
export type OutboxRecord = {
  readonly id: string;
  readonly client_message_id: string;
  readonly request_fingerprint: Uint8Array;
  readonly wire_fingerprint: Uint8Array;
  readonly to_address: string;
  readonly destination_kind: Destination["kind"];
  readonly destination_ref: string;
  readonly priority: Priority;
  readonly meta: string;
  readonly reply_to_id: string | null;
  readonly envelope_version: EnvelopeVersion;
  readonly enqueued_at: number;
  readonly attempts: number;
  readonly unanswered: number;
  readonly fenced: number;
  readonly next_attempt_at: number;
  readonly status: OutboxStatus;
  readonly last_error: string | null;
  readonly delivered_at: number | null;
  readonly broker_message_id: string | null;
  readonly history_id: number | null;
  readonly aborted_at: number | null;
  readonly aborted_by: string | null;
  readonly superseded_by: string | null;
  readonly accept_duplicate: number;
  readonly dismissed_at: number | null;
  readonly dismissed_by: string | null;
  readonly dismissed_why: string | null;
};

/** `why` is the operator's own words. */
export type DismissOrder = {
  readonly id: string;
  readonly by: "operator";
  readonly why: string;
  readonly nowMs: number;
};

/** A row as the local API shows it. */
export function showOutboxRow(record: OutboxRecord): OutboxItem {
  return {
    id: record.id,
    client_message_id: record.client_message_id,
    to: record.to_address,
    destination_kind: record.destination_kind,
    destination_ref: record.destination_ref,
    priority: record.priority,
    meta: record.meta === "" ? null : (parseOwnJsonText(record.meta) as Meta),
    reply_to_id: record.reply_to_id,
    envelope_version: record.envelope_version,
    request_fingerprint: fingerprintPrefix(record.request_fingerprint),
    wire_fingerprint: Buffer.from(record.wire_fingerprint).toString("hex"),
    status: record.status,
    fate: fateOf({
      status: record.status,
      attempts: record.attempts,
      unanswered: record.unanswered,
      fenced: record.fenced === 1,
    }),
    enqueued_at: record.enqueued_at,
    attempts: record.attempts,
    unanswered: record.unanswered,
    fenced: record.fenced === 1,
    next_attempt_at: record.next_attempt_at,
    last_error: record.last_error,
    delivered_at: record.delivered_at,
    broker_message_id: record.broker_message_id,
    history_id: record.history_id,
    aborted_at: record.aborted_at,
    aborted_by: record.aborted_by,
    superseded_by: record.superseded_by,
    accept_duplicate: record.accept_duplicate === 1,
    dismissed_at: record.dismissed_at,
    dismissed_by: record.dismissed_by,
    dismissed_why: record.dismissed_why,
  };
}

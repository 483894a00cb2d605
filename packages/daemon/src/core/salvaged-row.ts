// What becomes of an outbox row that could be read from a damaged file. A row that is still to be sent must be what was
// accepted, to the byte. The damage may hide a try of it, so its fate is unknown until the broker is asked.
import type { Envelope } from "@claudemesh/protocol/messages/envelope";
import { fingerprint, type Sha256, sameFingerprint } from "@claudemesh/protocol/messages/fingerprint";

/** Columns by name, as the file gives them: any of them may hold anything. */
export type SalvagedRow = Readonly<Record<string, unknown>>;

const recoveredError = "recovered: read from a damaged outbox, so that the broker may know more of it";

/**
 * `unchanged`: the row is kept as it was read. `fate_unknown`: it is pending again, with one more try whose end is unknown.
 * `damaged`: it is not what was accepted, and must not be sent.
 */
export type Salvaged =
  | { readonly type: "unchanged" | "fate_unknown"; readonly row: SalvagedRow }
  | { readonly type: "damaged" };

export function prepareSalvaged(row: SalvagedRow, nowMs: number, sha256: Sha256): Salvaged {
  // Final rows only answer for their id, and need no payload for that.
  if (row.status === "done" || row.status === "aborted") return { type: "unchanged", row };
  if (!isAsAccepted(row, sha256)) return { type: "damaged" };
  if (row.status !== "pending" && row.status !== "inflight") return { type: "unchanged", row };
  return { type: "fate_unknown", row: asUnanswered(row, nowMs, recoveredError) };
}

/** Counts one more try, whose end is unknown. */
function asUnanswered(row: SalvagedRow, nowMs: number, lastError: string): SalvagedRow {
  return {
    ...row,
    status: "pending",
    attempts: Number(row.attempts) + 1,
    unanswered: Number(row.unanswered) + 1,
    next_attempt_at: nowMs,
    last_error: lastError,
  };
}

/** The wire fingerprint covers everything that leaves the host but the id. */
function isAsAccepted(row: SalvagedRow, sha256: Sha256): boolean {
  const { wire_fingerprint, payload, destination_ref, meta, reply_to_id } = row;
  if (!(wire_fingerprint instanceof Uint8Array) || !(payload instanceof Uint8Array)) return false;
  if (typeof destination_ref !== "string" || typeof meta !== "string") return false;
  const envelope = {
    version: row.envelope_version,
    destination: { kind: row.destination_kind, ref: destination_ref },
    replyToId: typeof reply_to_id === "string" ? reply_to_id : undefined,
    priority: row.priority,
    // The meta of version "3" leaves inside the payload; the column only shows it.
    canonicalMeta: row.envelope_version === "3" ? "" : meta,
    body: payload,
  };
  // Fields of other types than an envelope has make another fingerprint, which is all that is asked here.
  return sameFingerprint(fingerprint(sha256, envelope as Envelope), wire_fingerprint);
}

// Turning done rows into tombstones. Nothing else is ever removed from the outbox, and a tombstone answers a retry
// exactly as its row did.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { lowestUlidAt } from "./time-ordered-ids.ts";

const kept = `client_message_id, id, request_fingerprint, wire_fingerprint, to_address, destination_kind,
  destination_ref, priority, meta, reply_to_id, envelope_version, enqueued_at, attempts, delivered_at,
  broker_message_id, history_id, accept_duplicate`;

export function pruneDone(tx: Sqlite, deliveredBefore: number, nowMs: number, limit: number): number {
  // A row delivered before the moment was enqueued before it, so that its id bounds the search to old rows.
  const rows = tx
    .sql<{ id: string }>(
      "SELECT id FROM outbox WHERE id < ? AND status = 'done' AND delivered_at < ? ORDER BY id LIMIT ?",
    )
    .all(lowestUlidAt(deliveredBefore), deliveredBefore, limit);
  for (const { id } of rows) {
    tx.sql(`INSERT INTO outbox_tombstone (${kept}, pruned_at) SELECT ${kept}, ? FROM outbox WHERE id = ?`).run(
      nowMs,
      id,
    );
    tx.sql("DELETE FROM outbox WHERE id = ? AND status = 'done'").run(id);
  }
  return rows.length;
}

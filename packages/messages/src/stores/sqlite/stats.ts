// What a store holds, in numbers, on SQLite.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { rateWindowStartMs } from "../../core/rate-window.ts";
import type { MeshStats } from "../../ports/stats.ts";
import { meshCounts } from "../mesh-counts.ts";

const hourMs = 3_600_000;

export function selectStats(db: Sqlite, meshId: string, nowMs: number): MeshStats {
  const one = (text: string, ...values: (string | number)[]): number | undefined =>
    db.sql<{ n: number | null }>(text).get(...values)?.n ?? undefined;
  const rows = Object.entries(meshCounts).map(([name, { table, where = "1 = 1" }]): [string, number] => [
    name,
    one(`SELECT count(*) AS n FROM ${table} WHERE mesh_id = ? AND ${where}`, meshId) ?? 0,
  ]);
  const accepted = (sinceMs: number) =>
    one(
      "SELECT sum(accepted) AS n FROM rate_limit_counter WHERE mesh_id = ? AND window_start >= ?",
      meshId,
      rateWindowStartMs(sinceMs),
    ) ?? 0;
  const acceptedAt = (historyId: string) =>
    one(`SELECT accepted_at AS n FROM message_history WHERE mesh_id = ?1 AND history_id = (${historyId})`, meshId);
  return {
    rows: Object.fromEntries(rows),
    lastHistoryId: one("SELECT last_history_id AS n FROM mesh_history_counter WHERE mesh_id = ?", meshId) ?? 0,
    oldestUnsettledAtMs: acceptedAt(
      `SELECT min(history_id) FROM delivery_queue INDEXED BY delivery_queue_unsettled
       WHERE mesh_id = ?1 AND settled_at IS NULL`,
    ),
    oldestMessageAtMs: acceptedAt(
      `SELECT min(h.history_id) FROM message_history h WHERE h.mesh_id = ?1 AND h.history_id >
         coalesce((SELECT removed_up_to FROM mesh_housekeeping WHERE mesh_id = ?1), 0)`,
    ),
    acceptedLastHour: accepted(nowMs - hourMs),
    acceptedLastDay: accepted(nowMs - 24 * hourMs),
  };
}

export function selectSize(db: Sqlite): number {
  const row = db
    .sql<{ bytes: number }>("SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()")
    .get();
  return row?.bytes ?? 0;
}

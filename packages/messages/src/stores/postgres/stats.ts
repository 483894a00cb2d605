// What a store holds, in numbers, on PostgreSQL.
import { rateWindowStartMs } from "../../core/rate-window.ts";
import type { MeshStats } from "../../ports/stats.ts";
import { meshCounts } from "../mesh-counts.ts";
import type { Reading } from "./stored-accepts.ts";

const hourMs = 3_600_000;

export async function selectStats(db: Reading, meshId: string, nowMs: number): Promise<MeshStats> {
  const one = async (text: string, ...values: unknown[]): Promise<number | undefined> => {
    const [row] = await db.query<{ n: number | null }>(text, values);
    return row?.n ?? undefined;
  };
  const rows: Record<string, number> = {};
  for (const [name, { table, where = "true" }] of Object.entries(meshCounts)) {
    rows[name] = (await one(`SELECT count(*) AS n FROM mesh.${table} WHERE mesh_id = $1 AND ${where}`, meshId)) ?? 0;
  }
  const accepted = async (sinceMs: number) =>
    (await one(
      `SELECT sum(accepted)::bigint AS n FROM mesh.rate_limit_counter WHERE mesh_id = $1 AND window_start >= $2`,
      meshId,
      new Date(rateWindowStartMs(sinceMs)),
    )) ?? 0;
  const acceptedAt = (historyId: string) =>
    one(
      `SELECT (extract(epoch FROM accepted_at) * 1000)::float8 AS n FROM mesh.message_history
       WHERE mesh_id = $1 AND history_id = (${historyId})`,
      meshId,
    );
  return {
    rows,
    lastHistoryId:
      (await one("SELECT last_history_id AS n FROM mesh.mesh_history_counter WHERE mesh_id = $1", meshId)) ?? 0,
    oldestUnsettledAtMs: await acceptedAt(
      "SELECT min(history_id) FROM mesh.delivery_queue WHERE mesh_id = $1 AND settled_at IS NULL",
    ),
    oldestMessageAtMs: await acceptedAt(
      `SELECT min(h.history_id) FROM mesh.message_history h WHERE h.mesh_id = $1 AND h.history_id >
         coalesce((SELECT removed_up_to FROM mesh.mesh_housekeeping WHERE mesh_id = $1), 0)`,
    ),
    acceptedLastHour: await accepted(nowMs - hourMs),
    acceptedLastDay: await accepted(nowMs - 24 * hourMs),
  };
}

export async function selectSize(db: Reading): Promise<number> {
  const [row] = await db.query<{ bytes: number }>("SELECT pg_database_size(current_database()) AS bytes");
  return row?.bytes ?? 0;
}

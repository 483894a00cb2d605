// The embedded limiter: the idempotent budget of one mesh per window, kept in the broker's own database so that a
// restart does not refill it. Shares the accept's transaction; a refusal that follows refunds nothing.
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { type RateLimit, retryAfterSeconds, windowStartMs } from "../../core/rate-limit.ts";
import type { Limiter } from "../../ports/limiter.ts";

/** `spent`: this call took a unit; else the id was counted in this window already. */
export type Budget =
  | { readonly ok: true; readonly spent: boolean }
  | { readonly ok: false; readonly retryAfterSeconds: number };

/** At most one unit per (mesh, id, window), however often an id is offered. */
export function consumeBudget(
  tx: Sqlite,
  rate: RateLimit,
  meshId: string,
  clientMessageId: string,
  nowMs: number,
): Budget {
  const windowStart = windowStartMs(rate, nowMs);
  const counted = tx
    .sql("SELECT 1 FROM rate_limit_id WHERE mesh_id = ? AND window_start = ? AND client_message_id = ?")
    .get(meshId, windowStart, clientMessageId);
  if (counted !== undefined) return { ok: true, spent: false };
  const window = tx
    .sql<{ used: number }>("SELECT used FROM rate_limit_window WHERE mesh_id = ? AND window_start = ?")
    .get(meshId, windowStart);
  if (window !== undefined && window.used >= rate.limit) {
    return { ok: false, retryAfterSeconds: retryAfterSeconds(rate, nowMs) };
  }
  tx.sql(
    `INSERT INTO rate_limit_window (mesh_id, window_start, used) VALUES (?, ?, 1)
     ON CONFLICT (mesh_id, window_start) DO UPDATE SET used = used + 1`,
  ).run(meshId, windowStart);
  tx.sql("INSERT INTO rate_limit_id (mesh_id, window_start, client_message_id) VALUES (?, ?, ?)").run(
    meshId,
    windowStart,
    clientMessageId,
  );
  return { ok: true, spent: true };
}

/** The same budget for sends whose accept is part of another transaction: spent before it, in one of its own. */
export function createSqliteLimiter(commit: GroupCommit, rate: RateLimit): Limiter {
  return {
    consume: async (meshId, clientMessageId, nowMs) => {
      const budget = await commit.submit((tx) => consumeBudget(tx, rate, meshId, clientMessageId, nowMs));
      if (budget.ok) return { type: "ok", spent: budget.spent };
      return { type: "denied", retryAfterSeconds: budget.retryAfterSeconds };
    },
    // It is a table of the store.
    available: async () => true,
  };
}

/** Windows that ended more than one window ago decide nothing any more. */
export function sweepBudget(tx: Sqlite, rate: RateLimit, nowMs: number, limit: number): number {
  const before = windowStartMs(rate, nowMs) - rate.windowSeconds * 1000;
  let removed = 0;
  const stale = tx
    .sql<{ mesh_id: string; window_start: number }>(
      "SELECT mesh_id, window_start FROM rate_limit_window WHERE window_start < ? LIMIT 100",
    )
    .all(before);
  for (const { mesh_id, window_start } of stale) {
    const rest = limit - removed;
    if (rest <= 0) break;
    const ids = tx
      .sql(
        `DELETE FROM rate_limit_id WHERE (mesh_id, window_start, client_message_id) IN
           (SELECT mesh_id, window_start, client_message_id FROM rate_limit_id
            WHERE mesh_id = ? AND window_start = ? LIMIT ?)`,
      )
      .run(mesh_id, window_start, rest).changes;
    removed += ids;
    if (ids < rest) {
      tx.sql("DELETE FROM rate_limit_window WHERE mesh_id = ? AND window_start = ?").run(mesh_id, window_start);
      removed++;
    }
  }
  return removed;
}

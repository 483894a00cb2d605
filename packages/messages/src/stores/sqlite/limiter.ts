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

/** The budgets of calls that follow each other in one transaction: what a window has spent is read and written once. */
export class BudgetBatch {
  readonly #tx: Sqlite;
  readonly #rate: RateLimit;
  readonly #windows = new Map<string, SpentWindow>();

  constructor(tx: Sqlite, rate: RateLimit) {
    this.#tx = tx;
    this.#rate = rate;
  }

  /** Whether `consume` would cover the id; it writes nothing. */
  admits(meshId: string, clientMessageId: string, nowMs: number): boolean {
    return this.#hasRoom(this.#window(meshId, nowMs)) || this.#isCounted(meshId, clientMessageId, nowMs);
  }

  /** At most one unit per (mesh, id, window), however often an id is offered. */
  consume(meshId: string, clientMessageId: string, nowMs: number): Budget {
    const window = this.#window(meshId, nowMs);
    if (!this.#hasRoom(window)) {
      if (this.#isCounted(meshId, clientMessageId, nowMs)) return { ok: true, spent: false };
      return { ok: false, retryAfterSeconds: retryAfterSeconds(this.#rate, nowMs) };
    }
    const { changes } = this.#tx
      .sql(
        `INSERT INTO rate_limit_id (mesh_id, window_start, client_message_id) VALUES (?, ?, ?)
         ON CONFLICT (mesh_id, window_start, client_message_id) DO NOTHING`,
      )
      .run(meshId, window.start, clientMessageId);
    if (changes === 0) return { ok: true, spent: false };
    window.used += 1;
    return { ok: true, spent: true };
  }

  /** Writes what was spent. Belongs into the same transaction, behind the last call. */
  finish(): void {
    for (const window of this.#windows.values()) {
      if (window.used === window.stored) continue;
      this.#tx
        .sql(
          `INSERT INTO rate_limit_window (mesh_id, window_start, used) VALUES (?1, ?2, ?3)
           ON CONFLICT (mesh_id, window_start) DO UPDATE SET used = ?3`,
        )
        .run(window.meshId, window.start, window.used);
      window.stored = window.used;
    }
  }

  #hasRoom({ used }: SpentWindow): boolean {
    return used < this.#rate.limit;
  }

  #isCounted(meshId: string, clientMessageId: string, nowMs: number): boolean {
    const row = this.#tx
      .sql("SELECT 1 FROM rate_limit_id WHERE mesh_id = ? AND window_start = ? AND client_message_id = ?")
      .get(meshId, windowStartMs(this.#rate, nowMs), clientMessageId);
    return row !== undefined;
  }

  #window(meshId: string, nowMs: number): SpentWindow {
    const start = windowStartMs(this.#rate, nowMs);
    const current = this.#windows.get(meshId);
    if (current?.start === start) return current;
    // Times of one batch may lie on both sides of a window's end.
    if (current !== undefined) this.finish();
    const stored = this.#tx
      .sql<{ used: number }>("SELECT used FROM rate_limit_window WHERE mesh_id = ? AND window_start = ?")
      .get(meshId, start)?.used;
    const window = { meshId, start, used: stored ?? 0, stored: stored ?? 0 };
    this.#windows.set(meshId, window);
    return window;
  }
}

type SpentWindow = { readonly meshId: string; readonly start: number; used: number; stored: number };

/** The same budget for sends whose accept is part of another transaction: spent before it, in one of its own. */
export function createSqliteLimiter(commit: GroupCommit, rate: RateLimit): Limiter {
  return {
    consume: async (meshId, clientMessageId, nowMs) => {
      const budget = await commit.submit((tx) => {
        const batch = new BudgetBatch(tx, rate);
        const consumed = batch.consume(meshId, clientMessageId, nowMs);
        batch.finish();
        return consumed;
      });
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

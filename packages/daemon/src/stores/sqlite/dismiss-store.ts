// Dismissing on SQLite: a mark on a dead row, set once. The row's state stays what it is.
// Why: docs/decisions/0136.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { DismissOrder } from "../../core/outbox-row.ts";
import type { DismissStore } from "../../ports.ts";
import type { MarkedCommit } from "./marked-commit.ts";

export function createSqliteDismissStore({ commit, note }: MarkedCommit): DismissStore {
  return {
    dismiss: (order) =>
      commit.submit((tx) => {
        note();
        return dismissRow(tx, order);
      }),
  };
}

/** Only a dead row, and the first mark stays. */
function dismissRow(tx: Sqlite, { id, by, why, nowMs }: DismissOrder): boolean {
  return (
    tx
      .sql(
        `UPDATE outbox SET dismissed_at = ?, dismissed_by = ?, dismissed_why = ?
         WHERE id = ? AND status = 'dead' AND dismissed_at IS NULL`,
      )
      .run(nowMs, by, why, id).changes === 1
  );
}

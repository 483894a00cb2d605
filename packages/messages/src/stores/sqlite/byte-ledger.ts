// The byte ledger of the embedded broker, in its own database.
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { ByteLedger } from "../../ports/byte-ledger.ts";

export function createSqliteByteLedger(commit: GroupCommit): ByteLedger {
  return {
    add: (meshId, windowStartMs, windowSeconds, bytes) =>
      commit.submit((tx) => {
        // Windows that have ended decide nothing any more.
        tx.sql("DELETE FROM byte_budget_window WHERE mesh_id = ? AND ends_at <= ?").run(meshId, windowStartMs);
        const row = tx
          .sql<{ used: number }>(
            `INSERT INTO byte_budget_window (mesh_id, window_start, ends_at, used) VALUES (?, ?, ?, ?)
             ON CONFLICT (mesh_id, window_start) DO UPDATE SET used = used + excluded.used RETURNING used`,
          )
          .get(meshId, windowStartMs, windowStartMs + windowSeconds * 1000, bytes);
        return row?.used ?? bytes;
      }),
  };
}

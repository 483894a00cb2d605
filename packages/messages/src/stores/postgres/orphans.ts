// Looking for rows of messages that do not fit together, on PostgreSQL.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { createPostgresRuleStore, postgresDialect } from "@claudemesh/storage/postgres-rules";
import type { RuleStore } from "@claudemesh/storage/row-rules";
import { type Dialect, orphanChecks, tablesOfMeshes } from "../orphan-checks.ts";
import type { Reading } from "./stored-accepts.ts";

const dialect: Dialect = {
  ...postgresDialect,
  isFalse: (expression) => `(NOT ${expression})`,
  historyOfDedupe: "h.broker_message_id = r.broker_message_id",
  now: "$2::timestamptz",
  daysAgo: (days) => `($2::timestamptz - interval '${days} days')`,
};

export function createRules(db: Reading): RuleStore {
  return createPostgresRuleStore(db, { rules: orphanChecks, dialect, tables: tablesOfMeshes });
}

export async function claimCheck(
  tx: PostgresTransaction,
  meshId: string,
  nowMs: number,
  beforeMs: number,
): Promise<boolean> {
  const claimed = await tx.execute(
    `INSERT INTO mesh.mesh_housekeeping AS k (mesh_id, removed_up_to, checked_at) VALUES ($1, 0, $2)
     ON CONFLICT (mesh_id) DO UPDATE SET checked_at = $2 WHERE k.checked_at < $3`,
    [meshId, new Date(nowMs), new Date(beforeMs)],
  );
  return claimed > 0;
}

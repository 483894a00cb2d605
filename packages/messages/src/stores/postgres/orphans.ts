// Looking for rows of messages that do not fit together, on PostgreSQL.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { createPostgresRuleStore, postgresDialect } from "@claudemesh/storage/postgres-rules";
import type { RuleStore } from "@claudemesh/storage/row-rules";
import { orphanChecks, tablesOfMeshes } from "../orphan-checks.ts";
import type { Dialect } from "../orphan-rule.ts";
import type { Reading } from "./stored-accepts.ts";

const dialect: Dialect = {
  ...postgresDialect,
  isFalse: (expression) => `(NOT ${expression})`,
  historyOfDedupe: "h.broker_message_id = r.broker_message_id",
  // Most messages have no meta at all, and what there is need not be read to see that it mentions nobody.
  mentionsOfMessage: `json_array_elements_text(CASE WHEN r.meta LIKE '%"mentions"%'
    THEN coalesce(r.meta::json -> 'mentions', '[]') ELSE '[]' END) AS j (value)`,
  now: "$2::timestamptz",
  daysAgo: (days) => `($2::timestamptz - interval '${days} days')`,
  daysBefore: (column, days) => `(${column} - interval '${days} days')`,
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

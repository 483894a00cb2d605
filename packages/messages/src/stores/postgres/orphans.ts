// Looking for rows of messages that do not fit together, on PostgreSQL.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { createPostgresRuleStore, postgresDialect } from "@claudemesh/storage/postgres-rules";
import type { RuleStore } from "@claudemesh/storage/row-rules";
import type { MeshCheck } from "../../ports/orphans.ts";
import { orphanChecks, tablesOfMeshes } from "../orphan-checks.ts";
import type { Dialect } from "../orphan-rule.ts";
import type { Reading } from "./stored-accepts.ts";

const dialect: Dialect = {
  ...postgresDialect,
  isFalse: (expression) => `(NOT ${expression})`,
  historyOfDedupe: "h.broker_message_id = r.broker_message_id",
  // Most messages have no meta at all, and what there is need not be read to see that it mentions no member.
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

export async function updateCheck(
  tx: PostgresTransaction,
  meshId: string,
  { endedAtMs, found, rules }: MeshCheck,
): Promise<void> {
  await tx.execute(
    `INSERT INTO mesh.mesh_housekeeping AS k
       (mesh_id, removed_up_to, checked_at, check_ended_at, check_found, check_rules) VALUES ($1, 0, $2, $2, $3, $4)
     ON CONFLICT (mesh_id) DO UPDATE SET check_ended_at = $2, check_found = $3, check_rules = $4`,
    [meshId, new Date(endedAtMs), found, rules.join(" ")],
  );
}

export async function selectCheck(db: Reading, meshId: string): Promise<MeshCheck | undefined> {
  const [row] = await db.query<{ ended_at: Date; found: number; rules: string }>(
    `SELECT check_ended_at AS ended_at, check_found::float8 AS found, check_rules AS rules FROM mesh.mesh_housekeeping
     WHERE mesh_id = $1 AND check_ended_at IS NOT NULL`,
    [meshId],
  );
  if (row === undefined) return undefined;
  const rules = row.rules.split(" ").filter((name) => name !== "");
  return { endedAtMs: row.ended_at.getTime(), found: row.found, rules };
}

// Looking for rows that do not fit together, on PostgreSQL: a page is one statement, which has one snapshot.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type { OrphanCheckName, OrphanCursor, OrphanPage } from "../../ports/orphans.ts";
import { type Dialect, type KeyType, type OrphanCheck, orphanChecks, tablesOfMeshes } from "../orphan-checks.ts";
import { keyText } from "../orphan-keys.ts";
import type { Reading } from "./stored-accepts.ts";

const dialect: Dialect = {
  table: (name) => `mesh.${name}`,
  isFalse: (expression) => `(NOT ${expression})`,
  historyOfDedupe: "h.broker_message_id = r.broker_message_id",
  now: "$2::timestamptz",
  weekAgo: "($2::timestamptz - interval '7 days')",
};

const typeNames: Record<KeyType, string> = { text: "text", integer: "bigint", id: "uuid", bytes: "bytea" };

export async function checkPage(
  db: Reading,
  name: OrphanCheckName,
  meshId: string,
  after: OrphanCursor | undefined,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
): Promise<OrphanPage> {
  const check: OrphanCheck = orphanChecks[name];
  const columns = Object.entries(check.key);
  const keys = columns.map(([column]) => `r.${column}`);
  const given = columns.map(([, type], index) => `$${index + 4}::${typeNames[type]}`);
  const beyond = after === undefined || keys.length === 0 ? "" : `AND (${keys.join(", ")}) > (${given.join(", ")})`;
  const order = keys.length === 0 ? "" : `ORDER BY ${keys.join(", ")}`;
  const rows = await db.query<Record<string, string | number | boolean | Uint8Array>>(
    `SELECT ${keys.map((key) => `${key}, `).join("")} (${check.broken(dialect)}) AS broken, $2::timestamptz AS now
     FROM ${dialect.table(check.table)} r WHERE r.mesh_id = $1 ${beyond} ${order} LIMIT $3`,
    [meshId, new Date(nowMs), limit, ...(after ?? [])],
  );
  const keyOf = (row: (typeof rows)[number]): OrphanCursor =>
    columns.map(([column]) => row[column] as OrphanCursor[number]);
  const last = rows.length === limit && columns.length > 0 ? rows.at(-1) : undefined;
  return {
    rows: rows.length,
    found: rows.filter((row) => row.broken === true).map((row) => keyText(keyOf(row))),
    next: last && keyOf(last),
  };
}

export async function selectStrayMeshes(db: Reading): Promise<string[]> {
  const found: string[] = [];
  for (const table of tablesOfMeshes) {
    // From one mesh to the next, not from row to row.
    const rows = await db.query<{ mesh_id: string }>(
      `WITH RECURSIVE m (mesh_id) AS ((SELECT mesh_id FROM mesh.${table} ORDER BY mesh_id LIMIT 1)
         UNION ALL SELECT (SELECT t.mesh_id FROM mesh.${table} t WHERE t.mesh_id > m.mesh_id
           ORDER BY t.mesh_id LIMIT 1) FROM m WHERE m.mesh_id IS NOT NULL)
       SELECT mesh_id FROM m WHERE mesh_id IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM mesh.mesh WHERE id = m.mesh_id) LIMIT 10`,
    );
    found.push(...rows.map((row) => `${table}/${row.mesh_id}`));
  }
  return found;
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

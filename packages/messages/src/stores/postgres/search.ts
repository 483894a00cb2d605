// Full text on PostgreSQL. The index is filled beside the accepts, step by step, from committed history; the cursor
// moves in the same transaction, so that a crash repeats nothing and forgets nothing.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { bytesPerMessage, clearText } from "../../core/search-text.ts";
import type { FoundPage, SearchStore } from "../../ports/reading.ts";
import { toQuery, toVector } from "./search-words.ts";
import type { Reading } from "./stored-accepts.ts";
import { hasMessage, joinMessages } from "./stored-items.ts";
import { selectVisiblePage } from "./visible-page.ts";

const rowsPerStep = 100;
const bytesPerStep = 131_072;

/** Checks first, so that nothing is locked while there is nothing to do. */
export async function hasStaleMesh(db: Reading): Promise<boolean> {
  const rows = await db.query(
    `SELECT 1 FROM mesh.mesh_history_counter c LEFT JOIN mesh.message_search_cursor s ON s.mesh_id = c.mesh_id
     WHERE c.last_history_id > coalesce(s.indexed_up_to, 0) LIMIT 1`,
  );
  return rows.length > 0;
}

/** False where nothing was left, or other brokers have locked what is left. */
export async function indexNext(tx: PostgresTransaction, nowMs: number): Promise<boolean> {
  await tx.execute(
    `INSERT INTO mesh.message_search_cursor (mesh_id, indexed_up_to, stepped_at)
     SELECT c.mesh_id, 0, to_timestamp(0) FROM mesh.mesh_history_counter c
     WHERE NOT EXISTS (SELECT 1 FROM mesh.message_search_cursor s WHERE s.mesh_id = c.mesh_id)
     ORDER BY c.mesh_id ON CONFLICT DO NOTHING`,
  );
  // The mesh that has waited longest; one that another broker is indexing is left to it.
  const [stale] = await tx.query<{ mesh_id: string; indexed_up_to: number; last_history_id: number }>(
    `SELECT s.mesh_id, s.indexed_up_to, c.last_history_id
     FROM mesh.message_search_cursor s JOIN mesh.mesh_history_counter c ON c.mesh_id = s.mesh_id
     WHERE c.last_history_id > s.indexed_up_to
     ORDER BY s.stepped_at, s.mesh_id LIMIT 1 FOR UPDATE OF s SKIP LOCKED`,
  );
  if (stale === undefined) return false;
  const upTo = Math.min(stale.last_history_id, stale.indexed_up_to + rowsPerStep);
  const indexedUpTo = await indexStretch(tx, stale.mesh_id, stale.indexed_up_to, upTo);
  await tx.execute("UPDATE mesh.message_search_cursor SET indexed_up_to = $2, stepped_at = $3 WHERE mesh_id = $1", [
    stale.mesh_id,
    indexedUpTo,
    new Date(nowMs),
  ]);
  return true;
}

/** Returns how far it came: to the end of the stretch, or to where the bytes of a step were spent. */
async function indexStretch(tx: PostgresTransaction, meshId: string, after: number, upTo: number): Promise<number> {
  const rows = await tx.query<{ history_id: number; body: Uint8Array }>(
    `SELECT h.history_id, substring(coalesce(t.body, q.body) FROM 1 FOR ${bytesPerMessage}) AS body
     FROM mesh.message_history h ${joinMessages}
     WHERE h.mesh_id = $1 AND h.history_id > $2 AND h.history_id <= $3 AND ${hasMessage}
       AND coalesce(t.envelope_version, q.envelope_version) = '1'
     ORDER BY h.history_id`,
    [meshId, after, upTo],
  );
  const found: { historyId: number; vector: string }[] = [];
  let bytes = 0;
  let indexedUpTo = upTo;
  for (const { history_id: historyId, body } of rows) {
    const text = clearText(body);
    if (text !== undefined) found.push({ historyId, vector: toVector(meshId, text) });
    bytes += body.length;
    if (bytes < bytesPerStep) continue;
    indexedUpTo = historyId;
    break;
  }
  await tx.execute(
    `INSERT INTO mesh.message_search (mesh_id, history_id, words)
     SELECT $1, history_id, vector::tsvector FROM unnest($2::bigint[], $3::text[]) AS f (history_id, vector)
     ON CONFLICT DO NOTHING`,
    [meshId, found.map(({ historyId }) => historyId), found.map(({ vector }) => vector)],
  );
  return indexedUpTo;
}

/** No other transaction indexes the mesh until this one ends. */
export async function holdIndex(tx: PostgresTransaction, meshId: string): Promise<void> {
  await tx.execute(
    `INSERT INTO mesh.message_search_cursor (mesh_id, indexed_up_to, stepped_at) VALUES ($1, 0, to_timestamp(0))
     ON CONFLICT DO NOTHING`,
    [meshId],
  );
  await tx.query("SELECT 1 FROM mesh.message_search_cursor WHERE mesh_id = $1 FOR UPDATE", [meshId]);
}

export function deleteSearchRows(
  tx: PostgresTransaction,
  meshId: string,
  historyIds: readonly number[],
): Promise<number> {
  return tx.execute("DELETE FROM mesh.message_search WHERE mesh_id = $1 AND history_id = ANY ($2::bigint[])", [
    meshId,
    historyIds,
  ]);
}

export async function selectFound(db: Reading, query: Parameters<SearchStore["find"]>[0]): Promise<FoundPage> {
  const wanted = toQuery(query.meshId, query.terms);
  if (wanted === "") return { items: [], nextAfter: undefined };
  const [cursor] = await db.query<{ indexed_up_to: number }>(
    "SELECT indexed_up_to FROM mesh.message_search_cursor WHERE mesh_id = $1",
    [query.meshId],
  );
  return selectVisiblePage(db, query, {
    last: cursor?.indexed_up_to ?? 0,
    table: "mesh.message_search",
    condition: (value) => `words @@ ${value}::tsquery`,
    value: wanted,
  });
}

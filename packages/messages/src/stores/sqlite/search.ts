// Full text on SQLite with FTS5. The index is filled beside the accepts, step by step, from committed history; the
// cursor moves in the same transaction, so that a crash repeats nothing and forgets nothing.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { bytesPerMessage, clearText } from "../../core/search-text.ts";
import type { FoundPage, SearchStore } from "../../ports/reading.ts";
import { hasMessage, joinMessages } from "./stored-items.ts";
import { selectVisiblePage } from "./visible-page.ts";

/** One step is one job among the accepts: short enough that they do not notice. */
const rowsPerStep = 32;
const bytesPerStep = 32_768;
/** Of the index, put together with every step; more than a step writes, so that merging keeps up. */
const mergePagesPerStep = 64;

/** A row's number, see the table. Computed by the database: it does not fit the numbers of this language. */
const rowNumber = (meshNumber: string, historyId: string) =>
  `CAST(${meshNumber} AS INTEGER) * 1099511627776 + CAST(${historyId} AS INTEGER)`;

type Cursor = { mesh_id: string; mesh_number: number | null; indexed_up_to: number | null; last_history_id: number };

/** The mesh that has waited longest; undefined: the index is complete. */
export function selectStaleMesh(db: Sqlite): Cursor | undefined {
  return db
    .sql<Cursor>(
      `SELECT c.mesh_id, s.mesh_number, s.indexed_up_to, c.last_history_id
       FROM mesh_history_counter c LEFT JOIN message_search_cursor s ON s.mesh_id = c.mesh_id
       WHERE c.last_history_id > coalesce(s.indexed_up_to, 0)
       ORDER BY coalesce(s.stepped_at, 0), c.mesh_id LIMIT 1`,
    )
    .get();
}

export function indexNext(tx: Sqlite, nowMs: number): boolean {
  const stale = selectStaleMesh(tx);
  if (stale === undefined) return false;
  const after = stale.indexed_up_to ?? 0;
  const upTo = Math.min(stale.last_history_id, after + rowsPerStep);
  const meshNumber = stale.mesh_number ?? nextMeshNumber(tx);
  const indexedUpTo = indexStretch(tx, { meshId: stale.mesh_id, meshNumber, after, upTo });
  tx.sql(
    `INSERT INTO message_search_cursor (mesh_id, mesh_number, indexed_up_to, stepped_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (mesh_id) DO UPDATE SET indexed_up_to = excluded.indexed_up_to, stepped_at = excluded.stepped_at`,
  ).run(stale.mesh_id, meshNumber, indexedUpTo, nowMs);
  tx.sql("INSERT INTO message_search (message_search, rank) VALUES ('merge', CAST(? AS INTEGER))").run(
    mergePagesPerStep,
  );
  return true;
}

function nextMeshNumber(tx: Sqlite): number {
  const row = tx.sql<{ next: number }>("SELECT coalesce(max(mesh_number), 0) + 1 AS next FROM message_search_cursor");
  return row.get()?.next ?? 1;
}

/** Returns how far it came: to the end of the stretch, or to where the bytes of a step were spent. */
function indexStretch(
  tx: Sqlite,
  stretch: { meshId: string; meshNumber: number; after: number; upTo: number },
): number {
  // SQLite's substr makes NULL of a blob without bytes.
  const rows = tx
    .sql<{ history_id: number; body: Uint8Array }>(
      `SELECT h.history_id, coalesce(substr(coalesce(t.body, q.body), 1, ${bytesPerMessage}), x'') AS body
       FROM message_history h ${joinMessages}
       WHERE h.mesh_id = ? AND h.history_id > ? AND h.history_id <= ? AND ${hasMessage}
         AND coalesce(t.envelope_version, q.envelope_version) = '1'
       ORDER BY h.history_id`,
    )
    .all(stretch.meshId, stretch.after, stretch.upTo);
  const insert = tx.sql(`INSERT INTO message_search (rowid, body) VALUES (${rowNumber("?1", "?2")}, ?3)`);
  let bytes = 0;
  for (const { history_id, body } of rows) {
    const text = clearText(body);
    if (text !== undefined) insert.run(stretch.meshNumber, history_id, text);
    bytes += body.length;
    if (bytes >= bytesPerStep) return history_id;
  }
  return stretch.upTo;
}

/** Returns how many rows went: a message that is no text has none. */
export function deleteSearchRow(tx: Sqlite, meshId: string, historyId: number): number {
  const cursor = tx
    .sql<{ mesh_number: number; indexed_up_to: number }>(
      "SELECT mesh_number, indexed_up_to FROM message_search_cursor WHERE mesh_id = ?",
    )
    .get(meshId);
  if (cursor === undefined || historyId > cursor.indexed_up_to) return 0;
  const number = rowNumber("?1", "?2");
  const isThere = tx.sql(`SELECT 1 FROM message_search WHERE rowid = ${number}`).get(cursor.mesh_number, historyId);
  if (isThere === undefined) return 0;
  tx.sql(`DELETE FROM message_search WHERE rowid = ${number}`).run(cursor.mesh_number, historyId);
  return 1;
}

export async function selectFound(db: Sqlite, query: Parameters<SearchStore["find"]>[0]): Promise<FoundPage> {
  const cursor = db
    .sql<{ mesh_number: number; indexed_up_to: number }>(
      "SELECT mesh_number, indexed_up_to FROM message_search_cursor WHERE mesh_id = ?",
    )
    .get(query.meshId);
  if (cursor === undefined || query.terms.length === 0) return { items: [], nextAfter: undefined };
  const wanted = query.terms.map(quote).join(" ");
  const select = db.sql<{ history_id: number }>(
    `SELECT rowid - (${rowNumber("?1", "0")}) AS history_id FROM message_search
     WHERE message_search MATCH ?2 AND rowid > ${rowNumber("?1", "?3")} AND rowid <= ${rowNumber("?1", "?4")}
     ORDER BY rowid`,
  );
  return selectVisiblePage(db, query, {
    last: cursor.indexed_up_to,
    between: (after, upTo) => select.all(cursor.mesh_number, wanted, after, upTo),
  });
}

/** Every word is a phrase of its own: nothing in it has a meaning to the index. */
function quote(term: string): string {
  return `"${term.replaceAll('"', '""')}"`;
}

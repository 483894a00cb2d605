// Revisions, heads and snapshots of a space on SQLite.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type {
  EntityIdQuery,
  FoundWrites,
  HeadRow,
  LayerAsk,
  RevisionRow,
  RowBound,
  SnapshotRow,
  SpaceRef,
  Tail,
  TailAsk,
  Write,
  WriteAsk,
} from "../../ports/rows.ts";
import { type RevisionColumns, toRevision } from "../rows.ts";

export function selectTail(db: Sqlite, space: SpaceRef, ask: TailAsk, limit: number): Tail {
  const key = [space.meshId, space.spaceId, ask.branch, ask.entityId] as const;
  const newest = db.sql<RevisionColumns>(`SELECT seq, op_index, op, body ${newestRow}`).get(...key, ask.upTo);
  if (newest === undefined) return { snapshot: undefined, revisions: [] };
  // Most entities were written whole last, and one row is all of them.
  if (newest.op !== "patch") return { snapshot: undefined, revisions: [toRevision(newest)] };
  const snapshot = db
    .sql<{ seq: number; document: string }>(
      `SELECT seq, document FROM space_snapshot
       WHERE mesh_id = ? AND space_id = ? AND branch = ? AND entity_id = ? AND seq <= ? ORDER BY seq DESC LIMIT 1`,
    )
    .get(...key, ask.upTo);
  const range = [...key, ask.upTo, snapshot?.seq ?? 0] as const;
  const needed = countNeeded(db, range, limit);
  if (needed === 0) return { snapshot, revisions: [] };
  const rows = db.sql<RevisionColumns>(`SELECT seq, op_index, op, body ${tailRows}`).all(...range, needed);
  return { snapshot, revisions: rows.map(toRevision) };
}

const newestRow = `FROM space_revision
  WHERE mesh_id = ? AND space_id = ? AND branch = ? AND entity_id = ? AND seq <= ?
  ORDER BY seq DESC, op_index DESC LIMIT 1`;

const tailRows = `FROM space_revision
  WHERE mesh_id = ? AND space_id = ? AND branch = ? AND entity_id = ? AND seq <= ? AND seq > ?
  ORDER BY seq DESC, op_index DESC LIMIT ?`;

/** What a full write has replaced is not needed, and its documents are not read: each may have a megabyte. */
function countNeeded(db: Sqlite, range: readonly (string | number)[], limit: number): number {
  const ops = db.sql<Pick<RevisionColumns, "op">>(`SELECT op ${tailRows}`).all(...range, limit);
  const full = ops.findIndex(({ op }) => op !== "patch");
  return full < 0 ? ops.length : full + 1;
}

export function selectWrites(db: Sqlite, space: SpaceRef, ask: WriteAsk, bound: RowBound): FoundWrites {
  const range = [space.meshId, space.spaceId, ask.branch, ask.entityId, ask.afterSeq, ask.upTo] as const;
  const sizes = db
    .sql<{ bytes: number }>(`SELECT octet_length(footprint) AS bytes ${writeRows}`)
    .all(...range, bound.rows);
  let bytes = 0;
  const last = sizes.findIndex((row) => {
    bytes += row.bytes;
    return bytes >= bound.bytes;
  });
  const fitting = last < 0 ? sizes.length : last + 1;
  if (fitting === 0) return { writes: [], cut: false };
  const rows = db
    .sql<{ seq: number; op_index: number; footprint: string }>(`SELECT seq, op_index, footprint ${writeRows}`)
    .all(...range, fitting);
  const writes = rows.map(({ seq, op_index: opIndex, footprint }) => ({ seq, opIndex, footprint }));
  return { writes, cut: last >= 0 || sizes.length >= bound.rows };
}

const writeRows = `FROM space_revision
  WHERE mesh_id = ? AND space_id = ? AND branch = ? AND entity_id = ? AND seq > ? AND seq <= ?
  ORDER BY seq DESC, op_index DESC LIMIT ?`;

export function selectLayer(db: Sqlite, space: SpaceRef, branch: string, ask: LayerAsk): Write[] {
  const rows = db
    .sql<{ op_index: number; footprint: string }>(
      `SELECT op_index, footprint FROM space_revision
       WHERE mesh_id = ? AND space_id = ? AND branch = ? AND entity_id = ? AND seq = ? ORDER BY op_index`,
    )
    .all(space.meshId, space.spaceId, branch, ask.entityId, ask.seq);
  return rows.map(({ op_index: opIndex, footprint }) => ({ seq: ask.seq, opIndex, footprint }));
}

export function selectEntityIds(db: Sqlite, space: SpaceRef, query: EntityIdQuery): string[] {
  const select = db.sql<{ entity_id: string }>(
    `SELECT entity_id FROM space_head
     WHERE mesh_id = ? AND space_id = ? AND branch = ? AND entity_id >= ? AND (? = 0 OR entity_id > ?)
       AND (? IS NULL OR entity_id < ?) AND seq > ?
     ORDER BY entity_id LIMIT ?`,
  );
  const { from, before = null, afterSeq, limit } = query;
  const taken = query.fromIsTaken ? 1 : 0;
  const found = query.branches.flatMap((branch) =>
    select.all(space.meshId, space.spaceId, branch, from, taken, from, before, before, afterSeq, limit),
  );
  return [...new Set(found.map((row) => row.entity_id))].sort(byBytes).slice(0, limit);
}

/** As the databases order text: by code points, which is not the order of UTF-16 units. */
function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

export function insertRevisions(tx: Sqlite, space: SpaceRef, revisions: readonly RevisionRow[]): void {
  const insert = tx.sql(
    `INSERT INTO space_revision (mesh_id, space_id, branch, entity_id, seq, op_index, op, body, footprint)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  for (const { branch, entityId, seq, opIndex, op, body, footprint } of revisions) {
    insert.run(space.meshId, space.spaceId, branch, entityId, seq, opIndex, op, body ?? null, footprint);
  }
}

export function upsertHeads(tx: Sqlite, space: SpaceRef, heads: readonly HeadRow[]): void {
  const upsert = tx.sql(
    `INSERT INTO space_head (mesh_id, space_id, branch, entity_id, seq, deleted) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (mesh_id, space_id, branch, entity_id) DO UPDATE SET seq = excluded.seq, deleted = excluded.deleted`,
  );
  for (const { branch, entityId, seq, deleted } of heads) {
    upsert.run(space.meshId, space.spaceId, branch, entityId, seq, deleted ? 1 : 0);
  }
}

export function insertSnapshots(tx: Sqlite, space: SpaceRef, snapshots: readonly SnapshotRow[]): void {
  const insert = tx.sql(
    `INSERT INTO space_snapshot (mesh_id, space_id, branch, entity_id, seq, document) VALUES (?, ?, ?, ?, ?, ?)`,
  );
  for (const { branch, entityId, seq, document } of snapshots) {
    insert.run(space.meshId, space.spaceId, branch, entityId, seq, document);
  }
}

export function deleteSnapshots(tx: Sqlite, space: SpaceRef): void {
  tx.sql("DELETE FROM space_snapshot WHERE mesh_id = ? AND space_id = ?").run(space.meshId, space.spaceId);
}

// Revisions, heads and snapshots of a space on PostgreSQL, each statement for all that is asked at once.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type {
  EntityIdQuery,
  FoundWrites,
  LayerAsk,
  RowBound,
  SpaceRef,
  Tail,
  TailAsk,
  Write,
  WriteAsk,
} from "../../ports/rows.ts";
import { type RevisionColumns, toRevision } from "../rows.ts";
import type { Reading } from "./reading.ts";

type TailColumns = { n: number; snapshot_seq: number | null; document: string | null } & (
  | RevisionColumns
  | Record<keyof RevisionColumns, null>
);

/** What a full write has replaced is not needed, and its documents are not read: each may have a megabyte. */
export async function selectTails(
  db: Reading,
  space: SpaceRef,
  asks: readonly TailAsk[],
  limit: number,
): Promise<Tail[]> {
  if (asks.length === 0) return [];
  const rows = await db.query<TailColumns>(
    `SELECT a.n::int AS n, s.seq AS snapshot_seq, CASE WHEN r.n IS NULL OR r.n = 1 THEN s.document END AS document,
       r.seq, r.op_index, r.op, r.body
     FROM unnest($3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY AS a (branch, entity_id, up_to, n)
     LEFT JOIN LATERAL (
       SELECT seq, document FROM mesh.space_snapshot
       WHERE mesh_id = $1 AND space_id = $2 AND branch = a.branch AND entity_id = a.entity_id AND seq <= a.up_to
       ORDER BY seq DESC LIMIT 1) s ON true
     LEFT JOIN LATERAL (
       SELECT * FROM (
         SELECT seq, op_index, op, body, row_number() OVER back AS n,
           count(*) FILTER (WHERE op <> 'patch') OVER (back ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS full_after
         FROM mesh.space_revision
         WHERE mesh_id = $1 AND space_id = $2 AND branch = a.branch AND entity_id = a.entity_id
           AND seq <= a.up_to AND seq > coalesce(s.seq, 0)
         WINDOW back AS (ORDER BY seq DESC, op_index DESC)
         ORDER BY seq DESC, op_index DESC LIMIT $6) newest
       WHERE full_after = 0) r ON true
     ORDER BY a.n, r.seq DESC, r.op_index DESC`,
    [
      space.meshId,
      space.spaceId,
      asks.map((ask) => ask.branch),
      asks.map((ask) => ask.entityId),
      asks.map((ask) => ask.upTo),
      limit,
    ],
    "space_tails",
  );
  const tails = asks.map(() => ({ snapshot: undefined as Tail["snapshot"], revisions: [] as Tail["revisions"][0][] }));
  for (const row of rows) {
    const tail = tails[row.n - 1];
    if (tail === undefined) continue;
    if (row.snapshot_seq !== null && row.document !== null) {
      tail.snapshot = { seq: row.snapshot_seq, document: row.document };
    }
    if (row.seq !== null) tail.revisions.push(toRevision(row));
  }
  return tails;
}

type WriteColumns = { n: number; seq: number; op_index: number; footprint: string };

export async function selectWrites(
  db: Reading,
  space: SpaceRef,
  asks: readonly WriteAsk[],
  bound: RowBound,
): Promise<FoundWrites[]> {
  if (asks.length === 0) return [];
  const rows = await db.query<WriteColumns & { bytes: number }>(
    `SELECT a.n::int AS n, r.seq, r.op_index, r.footprint, r.bytes::float8 AS bytes
     FROM unnest($3::text[], $4::text[], $5::bigint[], $6::bigint[])
       WITH ORDINALITY AS a (branch, entity_id, after_seq, up_to, n)
     CROSS JOIN LATERAL (
       SELECT seq, op_index, footprint, bytes FROM (
         SELECT seq, op_index, footprint, octet_length(footprint) AS own,
           sum(octet_length(footprint)) OVER (ORDER BY seq DESC, op_index DESC) AS bytes
         FROM mesh.space_revision
         WHERE mesh_id = $1 AND space_id = $2 AND branch = a.branch AND entity_id = a.entity_id
           AND seq > a.after_seq AND seq <= a.up_to
         ORDER BY seq DESC, op_index DESC LIMIT $7) w
       WHERE bytes - own < $8) r
     ORDER BY a.n, r.seq DESC, r.op_index DESC`,
    [
      space.meshId,
      space.spaceId,
      asks.map((ask) => ask.branch),
      asks.map((ask) => ask.entityId),
      asks.map((ask) => ask.afterSeq),
      asks.map((ask) => ask.upTo),
      bound.rows,
      bound.bytes,
    ],
    "space_writes",
  );
  const isFull = asks.map(() => false);
  for (const { n, bytes } of rows) if (bytes >= bound.bytes) isFull[n - 1] = true;
  return groupWrites(asks.length, rows).map((writes, index) => {
    return { writes, cut: isFull[index] === true || writes.length >= bound.rows };
  });
}

export async function selectLayers(
  db: Reading,
  space: SpaceRef,
  branch: string,
  asks: readonly LayerAsk[],
): Promise<Write[][]> {
  if (asks.length === 0) return [];
  const rows = await db.query<WriteColumns>(
    `SELECT a.n::int AS n, r.seq, r.op_index, r.footprint
     FROM unnest($4::text[], $5::bigint[]) WITH ORDINALITY AS a (entity_id, seq, n)
     CROSS JOIN LATERAL (
       SELECT seq, op_index, footprint FROM mesh.space_revision
       WHERE mesh_id = $1 AND space_id = $2 AND branch = $3 AND entity_id = a.entity_id AND seq = a.seq OFFSET 0) r
     ORDER BY a.n, r.op_index`,
    [space.meshId, space.spaceId, branch, asks.map((ask) => ask.entityId), asks.map((ask) => ask.seq)],
    "space_layers",
  );
  return groupWrites(asks.length, rows);
}

function groupWrites(count: number, rows: readonly WriteColumns[]): Write[][] {
  const writes = Array.from({ length: count }, (): Write[] => []);
  for (const { n, seq, op_index: opIndex, footprint } of rows) writes[n - 1]?.push({ seq, opIndex, footprint });
  return writes;
}

export async function selectEntityIds(
  db: Reading,
  { meshId, spaceId }: SpaceRef,
  { branches, from, fromIsTaken, before, afterSeq, limit }: EntityIdQuery,
): Promise<string[]> {
  const rows = await db.query<{ entity_id: string }>(
    `SELECT DISTINCT h.entity_id FROM unnest($3::text[]) AS b (branch)
     CROSS JOIN LATERAL (
       SELECT entity_id FROM mesh.space_head
       WHERE mesh_id = $1 AND space_id = $2 AND branch = b.branch
         AND entity_id >= $4 AND (NOT $5::boolean OR entity_id > $4) AND ($6::text IS NULL OR entity_id < $6)
         AND seq > $7
       ORDER BY entity_id LIMIT $8) h
     ORDER BY h.entity_id LIMIT $8`,
    [meshId, spaceId, branches, from, fromIsTaken, before ?? null, afterSeq, limit],
  );
  return rows.map((row) => row.entity_id);
}

export async function deleteSnapshots(tx: PostgresTransaction, space: SpaceRef): Promise<void> {
  await tx.execute("DELETE FROM mesh.space_snapshot WHERE mesh_id = $1 AND space_id = $2", [
    space.meshId,
    space.spaceId,
  ]);
}

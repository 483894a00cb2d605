// What an optimistic commit leaves behind on PostgreSQL: one statement, which takes the space's lock itself, compares the rows
// with the precondition, and writes everything or nothing.
// Why: docs/decisions/0070.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type { SessionRow, SpaceRef, SpaceRow } from "../../ports/rows.ts";
import type { AcceptedWrites } from "../../ports.ts";
import type { WriteBatch } from "../write-buffer.ts";
import { batchValues, insertsBehind } from "./write-batch.ts";

/** The rows that the commits were decided on; all of the commits are this session's. */
export type Precondition = { readonly space: SpaceRow; readonly session: SessionRow };

export function fitsOneStatement({ accepted }: WriteBatch): boolean {
  return accepted.every(
    ({ invocations, merge, createdBranch, deletedBranch }) =>
      invocations.length === 0 && merge === undefined && createdBranch === undefined && deletedBranch === undefined,
  );
}

/**
 * SPC-18: all of it, if the space and the session still are what was decided on and the member is one; else nothing, and
 * false. All three rows are looked at as they are once they are locked, which may be later than the statement began.
 */
export async function writeIfUnchanged(
  tx: PostgresTransaction,
  space: SpaceRef,
  batch: WriteBatch,
  precondition: Precondition,
): Promise<boolean> {
  const [only, ...others] = batch.accepted;
  const isSmall = only !== undefined && others.length === 0 && batch.verdicts.length === 1 && touchesOne(only);
  const conditions = conditionValues(batch, precondition);
  const rows = isSmall
    ? await tx.query(oneText, [...oneValues(space, only), ...conditions], "write_if_unchanged")
    : await tx.query(manyText, [...batchValues(space, batch), ...conditions], "write_many_if_unchanged");
  return rows.length > 0;
}

function touchesOne({ revisions, heads, snapshots }: AcceptedWrites): boolean {
  return revisions.length === 1 && heads.length === 1 && snapshots.length <= 1;
}

// The space is locked before the member and the session, as everywhere: `live` has no row before `held` has one. A row that
// changed after the statement began is found as it is now by the locks and by the update, and their conditions are asked
// of that: READ COMMITTED.
const conditionalText = (inserts: string, first: number) => `WITH
  held AS MATERIALIZED (SELECT 1 FROM mesh.space
    WHERE mesh_id = $1 AND space_id = $2 AND last_seq = $${first} AND signed_writes = $${first + 1}
    FOR NO KEY UPDATE),
  live AS MATERIALIZED (SELECT 1 FROM held, mesh.member m
    WHERE m.mesh_id = $1 AND m.pubkey = $${first + 3} AND m.revoked_at IS NULL FOR SHARE OF m),
  moved AS (UPDATE mesh.space_session s SET last_local_seq = $${first + 7}, used_at = $${first + 8}
    FROM live
    WHERE s.mesh_id = $1 AND s.space_id = $2 AND s.session_id = $${first + 2} AND s.member_pubkey = $${first + 3}
      AND s.epoch = $${first + 4} AND s.token_hash = $${first + 5}
      AND s.last_local_seq = $${first + 6}
    RETURNING 1),
  ${inserts},
  raised AS (UPDATE mesh.space SET last_seq = $3::bigint FROM moved
    WHERE mesh_id = $1 AND space_id = $2 AND last_seq < $3::bigint)
  SELECT FROM moved`;

function conditionValues({ verdicts }: WriteBatch, { space, session }: Precondition): unknown[] {
  const last = verdicts.at(-1);
  if (last === undefined) throw new Error("nothing was decided");
  return [
    space.lastSeq,
    space.signedWrites,
    session.sessionId,
    session.memberPubkey,
    session.epoch,
    session.tokenHash,
    session.lastLocalSeq,
    last.localSeq,
    // The driver would write a date in local time, at some length.
    new Date(last.decidedAtMs).toISOString(),
  ];
}

const manyText = conditionalText(insertsBehind("moved, "), 9);

// One commit with one operation, which is what most of them are: without JSON it costs the server a good deal less.
const oneText = conditionalText(
  `verdict AS (INSERT INTO mesh.space_verdict
    (mesh_id, space_id, session_id, local_seq, member_pubkey, fingerprint, branch, seq, result, decided_at)
    SELECT $1, $2, $17, $22::bigint, $18, $4::bytea, $5::text, $3::bigint, $6::text, $23::timestamptz FROM moved),
  logged AS (INSERT INTO mesh.space_commit (mesh_id, space_id, seq, branch, session_id, local_seq, member_pubkey,
      original, resolution, committed_at)
    SELECT $1, $2, $3::bigint, $5::text, $17, $22::bigint, $18, $7::text, $8::text, $23::timestamptz FROM moved),
  revision AS (INSERT INTO mesh.space_revision
    (mesh_id, space_id, branch, entity_id, seq, op_index, op, body, footprint)
    SELECT $1, $2, $5::text, $9::text, $3::bigint, 0, $10::text, $11::text, $12::text FROM moved),
  head AS (INSERT INTO mesh.space_head (mesh_id, space_id, branch, entity_id, seq, deleted)
    SELECT $1, $2, $5::text, $9::text, $3::bigint, $13::boolean FROM moved
    ON CONFLICT (mesh_id, space_id, branch, entity_id) DO UPDATE SET seq = excluded.seq, deleted = excluded.deleted),
  snapshot AS (INSERT INTO mesh.space_snapshot (mesh_id, space_id, branch, entity_id, seq, document)
    SELECT $1, $2, $5::text, $9::text, $3::bigint, $14::text FROM moved WHERE $14::text IS NOT NULL)`,
  15,
);

/** The commit's session, member, localSeq and time are among the conditions. */
function oneValues({ meshId, spaceId }: SpaceRef, { commit, verdict, revisions, heads, snapshots }: AcceptedWrites) {
  const [revision] = revisions;
  const { seq, branch, original, resolution } = commit;
  return [
    meshId,
    spaceId,
    seq,
    verdict.fingerprint,
    branch,
    verdict.result,
    original,
    resolution,
    revision?.entityId,
    revision?.op,
    revision?.body ?? null,
    revision?.footprint,
    heads[0]?.deleted,
    snapshots[0]?.document ?? null,
  ];
}

// Everything that the commits of a transaction leave behind on PostgreSQL, in one statement for all of them. Each part writes a table of
// its own, so that none of them depends on another's rows.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type { CommitRow, HeadRow, RevisionRow, SnapshotRow, SpaceRef, VerdictRow } from "../../ports/rows.ts";
import { branchPair } from "../rows.ts";
import type { WriteBatch } from "../write-buffer.ts";
import { branchDeletion, branchInsert, mergeInsert } from "./branch-rows.ts";
import { invocationsInsert } from "./commit-rows.ts";
import type { Statement } from "./reading.ts";

/**
 * What cannot be put into its format is thrown, before anything is sent: COMMIT may follow without a look at the promise, and
 * of what was never sent the server knows nothing.
 */
export function writeBatch(tx: PostgresTransaction, space: SpaceRef, batch: WriteBatch): Promise<unknown> {
  const statements = statementsFor(space, batch);
  return Promise.all(statements.map(({ text, values, name }) => tx.execute(text, values, name)));
}

function statementsFor(space: SpaceRef, batch: WriteBatch): Statement[] {
  const { accepted, verdicts } = batch;
  // Each session moves to its last verdict.
  const moves = [...new Map(verdicts.map((row) => [row.sessionId, row])).values()];
  const values = [...batchValues(space, batch), JSON.stringify(moves.map(moveColumns))];
  const statements: Statement[] = [{ text: batchText, values, name: "write_batch" }];
  const invocations = accepted.flatMap((writes) => writes.invocations);
  if (invocations.length > 0) statements.push(invocationsInsert(space, invocations));
  for (const { commit, merge, createdBranch, deletedBranch } of accepted) {
    if (merge !== undefined) {
      statements.push(mergeInsert(space, branchPair(merge.sourceBranch, merge.targetBranch), merge));
    }
    if (createdBranch !== undefined) statements.push(branchInsert(space, createdBranch, commit.committedAtMs));
    if (deletedBranch !== undefined) statements.push(branchDeletion(space, deletedBranch, commit.seq));
  }
  return statements;
}

/**
 * The rows come as JSON, one text for each table: arrays by column would be a function each, and thirty of them cost more
 * than the rows of a small batch.
 */
const rowsOf = (table: string, parameter: number) =>
  `json_populate_recordset(NULL::mesh.${table}, $${parameter}::json)`;

/** `gate`: what must have a row for anything to be written. Takes `batchValues`. */
export const insertsBehind = (gate: string) => `
  verdict AS (INSERT INTO mesh.space_verdict
    (mesh_id, space_id, session_id, local_seq, member_pubkey, fingerprint, branch, seq, result, decided_at)
    SELECT $1, $2, session_id, local_seq, member_pubkey, fingerprint, branch, seq, result, decided_at
    FROM ${gate}${rowsOf("space_verdict", 4)}),
  logged AS (INSERT INTO mesh.space_commit (mesh_id, space_id, seq, branch, session_id, local_seq, member_pubkey,
      original, resolution, invocation_ref, authorization_ref, committed_at)
    SELECT $1, $2, seq, branch, session_id, local_seq, member_pubkey, original, resolution, invocation_ref,
      authorization_ref, committed_at
    FROM ${gate}${rowsOf("space_commit", 5)}),
  revision AS (INSERT INTO mesh.space_revision
    (mesh_id, space_id, branch, entity_id, seq, op_index, op, body, footprint)
    SELECT $1, $2, branch, entity_id, seq, op_index, op, body, footprint
    FROM ${gate}${rowsOf("space_revision", 6)}),
  head AS (INSERT INTO mesh.space_head (mesh_id, space_id, branch, entity_id, seq, deleted)
    SELECT $1, $2, branch, entity_id, seq, deleted FROM ${gate}${rowsOf("space_head", 7)}
    ON CONFLICT (mesh_id, space_id, branch, entity_id) DO UPDATE SET seq = excluded.seq, deleted = excluded.deleted),
  snapshot AS (INSERT INTO mesh.space_snapshot (mesh_id, space_id, branch, entity_id, seq, document)
    SELECT $1, $2, branch, entity_id, seq, document FROM ${gate}${rowsOf("space_snapshot", 8)})`;

const batchText = `WITH ${insertsBehind("")},
  moved AS (UPDATE mesh.space_session s SET last_local_seq = m.last_local_seq, used_at = m.used_at
    FROM ${rowsOf("space_session", 9)} AS m
    WHERE s.mesh_id = $1 AND s.space_id = $2 AND s.session_id = m.session_id)
  UPDATE mesh.space SET last_seq = $3::bigint WHERE mesh_id = $1 AND space_id = $2 AND last_seq < $3::bigint`;

export function batchValues({ meshId, spaceId }: SpaceRef, { accepted, verdicts }: WriteBatch): unknown[] {
  const heads = accepted.flatMap((writes) => writes.heads);
  return [
    meshId,
    spaceId,
    accepted.at(-1)?.commit.seq ?? 0,
    JSON.stringify(verdicts.map(verdictColumns)),
    JSON.stringify(accepted.map(({ commit }) => commitColumns(commit))),
    JSON.stringify(accepted.flatMap(({ revisions }) => revisions.map(revisionColumns))),
    // The last one of each entity: a statement writes a row once.
    JSON.stringify([...new Map(heads.map((row) => [`${row.branch}\0${row.entityId}`, row])).values()].map(headColumns)),
    JSON.stringify(accepted.flatMap(({ snapshots }) => snapshots.map(snapshotColumns))),
  ];
}

function verdictColumns(row: VerdictRow) {
  return {
    session_id: row.sessionId,
    local_seq: row.localSeq,
    member_pubkey: row.memberPubkey,
    fingerprint: `\\x${Buffer.from(row.fingerprint).toString("hex")}`,
    branch: row.branch,
    seq: row.seq ?? null,
    result: row.result,
    decided_at: new Date(row.decidedAtMs),
  };
}

function moveColumns(row: VerdictRow) {
  return { session_id: row.sessionId, last_local_seq: row.localSeq, used_at: new Date(row.decidedAtMs) };
}

function commitColumns(row: CommitRow) {
  return {
    seq: row.seq,
    branch: row.branch,
    session_id: row.sessionId,
    local_seq: row.localSeq,
    member_pubkey: row.memberPubkey,
    original: row.original,
    resolution: row.resolution,
    invocation_ref: row.invocationRef ?? null,
    authorization_ref: row.authorizationRef ?? null,
    committed_at: new Date(row.committedAtMs),
  };
}

function revisionColumns({ branch, entityId, seq, opIndex, op, body, footprint }: RevisionRow) {
  return { branch, entity_id: entityId, seq, op_index: opIndex, op, body: body ?? null, footprint };
}

function headColumns({ branch, entityId, seq, deleted }: HeadRow) {
  return { branch, entity_id: entityId, seq, deleted };
}

function snapshotColumns({ branch, entityId, seq, document }: SnapshotRow) {
  return { branch, entity_id: entityId, seq, document };
}

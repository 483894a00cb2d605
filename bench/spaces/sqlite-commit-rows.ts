// The rows of accepted commits on SQLite in a bare loop: so many commits per transaction, nothing read, nothing judged. The
// file has the product's own migrations. Arguments: its path, then mesh and member as JSON.
import process from "node:process";
import { openDurableFile } from "../layers/durable-file.ts";
import { Latencies } from "../load/latencies.ts";
import { serveOrders } from "../processes/orders.ts";
import { type BenchSpace, benchSpace, entityOf, patchesPerSnapshot, rowTexts, sessionIdOf } from "./bench-commit.ts";
import type { CommitsOrder, CommitsResult } from "./in-process-commits.ts";

const [path, benchJson] = process.argv.slice(2);
if (path === undefined || benchJson === undefined) throw new Error("give the file's path, and mesh and member as JSON");
const { meshId, member } = JSON.parse(benchJson) as BenchSpace;
const db = openDurableFile(path);

const begin = db.prepare("BEGIN IMMEDIATE");
const commit = db.prepare("COMMIT");
const insertSpace = db.prepare(`INSERT INTO space (mesh_id, space_id, signed_writes, last_seq, created_by, created_at)
  VALUES (?, ?, 'optional', 0, ?, 1)`);
const insertSession = db.prepare(`INSERT INTO space_session (mesh_id, space_id, session_id, member_pubkey, epoch,
  token_hash, last_local_seq, used_at) VALUES (?, ?, ?, ?, 1, ?, 0, ?)`);
const insertVerdict = db.prepare(`INSERT INTO space_verdict (mesh_id, space_id, session_id, local_seq, member_pubkey,
  fingerprint, branch, seq, result, decided_at) VALUES (?, ?, ?, ?, ?, ?, '', ?, ?, ?)`);
const moveSession = db.prepare(`UPDATE space_session SET last_local_seq = ?, used_at = ?
  WHERE mesh_id = ? AND space_id = ? AND session_id = ?`);
const insertCommit = db.prepare(`INSERT INTO space_commit (mesh_id, space_id, seq, branch, session_id, local_seq,
  member_pubkey, original, resolution, committed_at) VALUES (?, ?, ?, '', ?, ?, ?, ?, ?, ?)`);
const insertRevision = db.prepare(`INSERT INTO space_revision (mesh_id, space_id, branch, entity_id, seq, op_index, op,
  body, footprint) VALUES (?, ?, '', ?, ?, 0, 'patch', ?, ?)`);
const upsertHead = db.prepare(`INSERT INTO space_head (mesh_id, space_id, branch, entity_id, seq, deleted)
  VALUES (?, ?, '', ?, ?, 0)
  ON CONFLICT (mesh_id, space_id, branch, entity_id) DO UPDATE SET seq = excluded.seq, deleted = excluded.deleted`);
const insertSnapshot = db.prepare(`INSERT INTO space_snapshot (mesh_id, space_id, branch, entity_id, seq, document)
  VALUES (?, ?, '', ?, ?, ?)`);
const raiseLastSeq = db.prepare("UPDATE space SET last_seq = ? WHERE mesh_id = ? AND space_id = ?");

const fingerprint = new Uint8Array(32).fill(0xa5);
const { original, resolution, result, body, footprint, document } = rowTexts;
insertSpace.run(meshId, benchSpace, member);
let lastSeq = 0;
const localSeqs: number[] = [];

function writeCommit(session: number): void {
  const nowMs = Date.now();
  const seq = ++lastSeq;
  const localSeq = (localSeqs[session] ?? 0) + 1;
  localSeqs[session] = localSeq;
  const sessionId = sessionIdOf(session);
  const id = entityOf(session);
  insertVerdict.run(meshId, benchSpace, sessionId, localSeq, member, fingerprint, seq, result, nowMs);
  moveSession.run(localSeq, nowMs, meshId, benchSpace, sessionId);
  insertCommit.run(meshId, benchSpace, seq, sessionId, localSeq, member, original, resolution, nowMs);
  insertRevision.run(meshId, benchSpace, id, seq, body, footprint);
  upsertHead.run(meshId, benchSpace, id, seq);
  if (localSeq % patchesPerSnapshot === 0) insertSnapshot.run(meshId, benchSpace, id, seq, document);
  raiseLastSeq.run(seq, meshId, benchSpace);
}

function writeForAWhile({ sessions, durationMs }: CommitsOrder): CommitsResult {
  for (let session = localSeqs.length; session < sessions; session++) {
    insertSession.run(meshId, benchSpace, sessionIdOf(session), member, fingerprint, Date.now());
    localSeqs.push(0);
  }
  const times = new Latencies();
  const startedAtMs = performance.now();
  let begunAtMs = startedAtMs;
  while (begunAtMs - startedAtMs < durationMs) {
    begin.run();
    for (let session = 0; session < sessions; session++) writeCommit(session);
    commit.run();
    const endedAtMs = performance.now();
    times.add(endedAtMs - begunAtMs);
    begunAtMs = endedAtMs;
  }
  const accepted = times.count * sessions;
  return { accepted, conflicts: 0, perSecond: accepted / ((begunAtMs - startedAtMs) / 1_000), ...times.figures() };
}

serveOrders<CommitsOrder, CommitsResult>(writeForAWhile);

// Steps of housekeeping for one mesh, on PostgreSQL. A broker that works on a mesh locks the mesh's housekeeping row, and others
// go on to the next mesh. So no two of them work on one mesh, and none of them waits for an accept.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type { ForgetStep, SweepStep, SweepTerms } from "../../ports/housekeeping.ts";
import { SweepTally } from "../sweep-tally.ts";
import { forgetFences, forgetIds, forgetLeases } from "./forgetting.ts";
import { forgetRates } from "./rate-counters.ts";
import { removeMessages } from "./retention.ts";
import type { Reading } from "./stored-accepts.ts";

export async function selectMeshes(db: Reading, after: string, limit: number): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    "SELECT id FROM mesh.mesh WHERE ($1 = '' OR id > nullif($1, '')::uuid) ORDER BY id LIMIT $2",
    [after, limit],
  );
  return rows.map(({ id }) => id);
}

export async function sweepMesh(tx: PostgresTransaction, meshId: string, terms: SweepTerms): Promise<SweepStep> {
  const tally = new SweepTally();
  const mesh = await lockHousekeeping(tx, meshId);
  if (mesh.type === "busy") return tally.step();
  // A broker whose clock is ahead of the server's must not forget ids too early.
  const nowMs = Math.min(terms.nowMs, mesh.serverNowMs);
  const aheadMs = terms.nowMs - nowMs;
  const { messagesBeforeMs, leasesBeforeMs } = terms;
  if (messagesBeforeMs !== undefined) {
    const bounds = { removedUpTo: mesh.removedUpTo, beforeMs: messagesBeforeMs - aheadMs, nowMs };
    const removedUpTo = await removeMessages(tx, meshId, bounds, tally);
    if (removedUpTo !== undefined) await updateRemovedUpTo(tx, meshId, removedUpTo);
  }
  if (terms.forgetIds) await forgetFences(tx, meshId, nowMs, tally);
  if (leasesBeforeMs !== undefined) await forgetLeases(tx, meshId, leasesBeforeMs - aheadMs, tally);
  await forgetRates(tx, meshId, nowMs, tally);
  return tally.step();
}

/** Needs no cursor, because an index finds what is left. */
export async function forgetNext(tx: PostgresTransaction, meshId: string, callerNowMs: number): Promise<ForgetStep> {
  const tally = new SweepTally();
  const mesh = await lockHousekeeping(tx, meshId);
  if (mesh.type === "busy") return { counts: {}, next: undefined };
  await forgetIds(tx, meshId, Math.min(callerNowMs, mesh.serverNowMs), tally);
  const { counts, more } = tally.step();
  return { counts, next: more ? "" : undefined };
}

type MeshLock =
  | { readonly type: "locked"; readonly removedUpTo: number; readonly serverNowMs: number }
  /** Another broker is at work on this mesh. */
  | { readonly type: "busy" };

async function lockHousekeeping(tx: PostgresTransaction, meshId: string): Promise<MeshLock> {
  const lock = async (): Promise<MeshLock> => {
    const [row] = await tx.query<{ removedUpTo: number; serverNowMs: number }>(
      `SELECT removed_up_to AS "removedUpTo", (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS "serverNowMs"
       FROM mesh.mesh_housekeeping WHERE mesh_id = $1 FOR UPDATE SKIP LOCKED`,
      [meshId],
    );
    return row === undefined ? { type: "busy" } : { type: "locked", ...row };
  };
  const first = await lock();
  if (first.type === "locked") return first;
  // The mesh may have no row yet. Where another broker inserts it now, this waits, and the mesh is then left to that broker.
  const inserted = await tx.execute(
    `INSERT INTO mesh.mesh_housekeeping (mesh_id, removed_up_to, checked_at) VALUES ($1, 0, to_timestamp(0))
     ON CONFLICT DO NOTHING`,
    [meshId],
  );
  return inserted === 1 ? lock() : { type: "busy" };
}

async function updateRemovedUpTo(tx: PostgresTransaction, meshId: string, historyId: number): Promise<void> {
  await tx.execute("UPDATE mesh.mesh_housekeeping SET removed_up_to = $2 WHERE mesh_id = $1", [meshId, historyId]);
}

// Steps of housekeeping for one mesh, on PostgreSQL. Whoever is at it holds the mesh's housekeeping row, and others
// go on to the next mesh: so no two of them meet, and none of them waits for an accept.
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
  const held = await holdMesh(tx, meshId);
  if (held === undefined) return tally.step();
  // A broker whose clock is ahead of the server's must not make everybody forget.
  const nowMs = Math.min(terms.nowMs, held.serverNowMs);
  const aheadMs = terms.nowMs - nowMs;
  const { messagesBeforeMs, leasesBeforeMs } = terms;
  if (messagesBeforeMs !== undefined) {
    const bounds = { removedUpTo: held.removedUpTo, beforeMs: messagesBeforeMs - aheadMs, nowMs };
    const removedUpTo = await removeMessages(tx, meshId, bounds, tally);
    if (removedUpTo !== undefined) await updateRemovedUpTo(tx, meshId, removedUpTo);
  }
  if (terms.forgetIds) await forgetFences(tx, meshId, nowMs, tally);
  if (leasesBeforeMs !== undefined) await forgetLeases(tx, meshId, leasesBeforeMs - aheadMs, tally);
  await forgetRates(tx, meshId, nowMs, tally);
  return tally.step();
}

/** There is no place to go on from: an index finds what is left. */
export async function forgetNext(tx: PostgresTransaction, meshId: string, givenNowMs: number): Promise<ForgetStep> {
  const tally = new SweepTally();
  const held = await holdMesh(tx, meshId);
  if (held === undefined) return { counts: {}, next: undefined };
  await forgetIds(tx, meshId, Math.min(givenNowMs, held.serverNowMs), tally);
  const { counts, more } = tally.step();
  return { counts, next: more ? "" : undefined };
}

/** Undefined: another broker is at work on this mesh. */
async function holdMesh(
  tx: PostgresTransaction,
  meshId: string,
): Promise<{ readonly removedUpTo: number; readonly serverNowMs: number } | undefined> {
  const hold = async () => {
    const [row] = await tx.query<{ removedUpTo: number; serverNowMs: number }>(
      `SELECT removed_up_to AS "removedUpTo", (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS "serverNowMs"
       FROM mesh.mesh_housekeeping WHERE mesh_id = $1 FOR UPDATE SKIP LOCKED`,
      [meshId],
    );
    return row;
  };
  const held = await hold();
  if (held !== undefined) return held;
  // The mesh's first time. Whoever else is just at that is waited for, and the mesh is then left to it.
  const made = await tx.execute(
    `INSERT INTO mesh.mesh_housekeeping (mesh_id, removed_up_to, checked_at) VALUES ($1, 0, to_timestamp(0))
     ON CONFLICT DO NOTHING`,
    [meshId],
  );
  return made === 1 ? hold() : undefined;
}

async function updateRemovedUpTo(tx: PostgresTransaction, meshId: string, historyId: number): Promise<void> {
  await tx.execute("UPDATE mesh.mesh_housekeeping SET removed_up_to = $2 WHERE mesh_id = $1", [meshId, historyId]);
}

// Steps of housekeeping for one mesh, on SQLite: what changes something is a job of the group commit like any accept.
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { ForgetStep, SweepStep, SweepTerms } from "../../ports/housekeeping.ts";
import { SweepTally } from "../sweep-tally.ts";
import { forgetFences, forgetIds, forgetLeases, selectExpiredIds } from "./forgetting.ts";
import { forgetRates } from "./rate-counters.ts";
import { removeMessages } from "./retention.ts";

export function selectMeshes(db: Sqlite, after: string, limit: number): string[] {
  return db
    .sql<{ id: string }>("SELECT id FROM mesh WHERE id > ? ORDER BY id LIMIT ?")
    .all(after, limit)
    .map(({ id }) => id);
}

export function sweepMesh(tx: Sqlite, meshId: string, terms: SweepTerms): SweepStep {
  const tally = new SweepTally();
  const { nowMs, messagesBeforeMs, leasesBeforeMs } = terms;
  if (messagesBeforeMs !== undefined) removeMessages(tx, meshId, { ...terms, messagesBeforeMs }, tally);
  if (terms.forgetIds) forgetFences(tx, meshId, nowMs, tally);
  if (leasesBeforeMs !== undefined) forgetLeases(tx, meshId, leasesBeforeMs, tally);
  forgetRates(tx, meshId, nowMs, tally);
  return tally.step();
}

/** Looking first leaves the write lock alone while there is nothing to forget. */
export async function forgetNext(
  db: Sqlite,
  commit: GroupCommit,
  meshId: string,
  after: string,
  nowMs: number,
): Promise<ForgetStep> {
  const { ids, next } = selectExpiredIds(db, meshId, after, nowMs);
  if (ids.length === 0) return { counts: {}, next };
  return commit.submit((tx) => {
    const tally = new SweepTally();
    const { stopped, stoppedAfter } = forgetIds(tx, meshId, ids, nowMs, tally);
    return { counts: tally.step().counts, next: stopped ? (stoppedAfter ?? after) : next };
  });
}

// Steps of housekeeping for one mesh, on SQLite: jobs of the group commit like any accept.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { ForgetStep, SweepStep, SweepTerms } from "../../ports/housekeeping.ts";
import { SweepTally } from "../sweep-tally.ts";
import { forgetFences, forgetIds, forgetLeases } from "./forgetting.ts";
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

/** Forgets the ids of one look, which began after `after` and ended at `next`. */
export function forgetStep(
  tx: Sqlite,
  meshId: string,
  look: { readonly ids: readonly string[]; readonly after: string; readonly next: string | undefined; nowMs: number },
): ForgetStep {
  const tally = new SweepTally();
  const { stopped, stoppedAfter } = forgetIds(tx, meshId, look.ids, look.nowMs, tally);
  return { counts: tally.step().counts, next: stopped ? (stoppedAfter ?? look.after) : look.next };
}

// The group commit of one database, with fault points around the batches that matter to them and around no other.
import type { FailpointName } from "@claudemesh/storage/failpoint-names";
import type { Failpoints } from "@claudemesh/storage/failpoints";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { Chance } from "../../ports.ts";
import { systemChance } from "../../system-chance.ts";

export type MarkedCommit = {
  readonly commit: GroupCommit;
  /** Called inside a transaction: fault points apply to the batch that it belongs to. */
  readonly note: () => void;
};

/** Without fault points it is a plain group commit. */
export function createMarkedCommit(
  db: Sqlite,
  failpoints: Failpoints<FailpointName>,
  points: { readonly before?: FailpointName; readonly after: FailpointName },
  nextTurn: Chance["nextTurn"] = systemChance.nextTurn,
): MarkedCommit {
  // Callers have a connection each, and a turn of the loop hears a few of them.
  const turns = { nextTurn, gathersTurns: true };
  if (!failpoints.active) return { commit: new GroupCommit(db, turns), note: () => undefined };
  let noted = false;
  let committing = false;
  const commit = new GroupCommit(db, {
    ...turns,
    beforeCommit: () => {
      committing = noted;
      noted = false;
      if (committing && points.before !== undefined) failpoints.hitSync(points.before);
    },
    afterCommit: () => {
      if (committing) failpoints.hitSync(points.after);
    },
  });
  return {
    commit,
    note: () => {
      noted = true;
    },
  };
}

// What may be asked of one space on PostgreSQL, each by a statement of its own.
import type { SpaceRef } from "../../ports/rows.ts";
import { answerOf } from "../../ports/steps.ts";
import type { SpaceView } from "../../ports.ts";
import { branchPair } from "../branch-pair.ts";
import { selectBranches, selectBranchPage, selectMerges } from "./branch-rows.ts";
import { selectInvocation, selectLog } from "./commit-rows.ts";
import { selectEntityIds, selectLayers, selectTails, selectWrites } from "./entity-rows.ts";
import type { Reading } from "./reading.ts";
import { selectSession, selectSpace, selectVerdicts } from "./session-rows.ts";

/** Each may have a megabyte. */
export const entitiesPerLook = 128;

export function viewOf(db: Reading, space: SpaceRef): SpaceView {
  return {
    entitiesPerLook,
    findSpace: () => answerOf(selectSpace(db, space)),
    findSession: (sessionId) => answerOf(selectSession(db, space, sessionId)),
    findVerdicts: (sessionId, localSeqs) => answerOf(selectVerdicts(db, space, sessionId, localSeqs)),
    findBranches: (names) => answerOf(selectBranches(db, space, names)),
    listBranches: (after, limit) => answerOf(selectBranchPage(db, space, after, limit)),
    readTails: (asks, limit) => answerOf(selectTails(db, space, asks, limit)),
    readWrites: (asks, bound) => answerOf(selectWrites(db, space, asks, bound)),
    readLayers: (branch, asks) => answerOf(selectLayers(db, space, branch, asks)),
    listEntityIds: (query) => answerOf(selectEntityIds(db, space, query)),
    readLog: (place, bound) => answerOf(selectLog(db, space, place, bound)),
    readMerges: (a, b, limit) => answerOf(selectMerges(db, space, branchPair(a, b), limit)),
    findInvocation: (hash) => answerOf(selectInvocation(db, space, hash)),
  };
}

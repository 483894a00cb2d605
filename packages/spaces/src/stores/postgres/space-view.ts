// What may be asked of one space on PostgreSQL, each by a statement of its own.

import { waitFor } from "../../ports/flow.ts";
import type { SpaceRef } from "../../ports/rows.ts";
import type { SpaceView } from "../../ports.ts";
import { branchPair } from "../rows.ts";
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
    findSpace: () => waitFor(selectSpace(db, space)),
    findSession: (sessionId) => waitFor(selectSession(db, space, sessionId)),
    findVerdicts: (sessionId, localSeqs) => waitFor(selectVerdicts(db, space, sessionId, localSeqs)),
    findBranches: (names) => waitFor(selectBranches(db, space, names)),
    listBranches: (after, limit) => waitFor(selectBranchPage(db, space, after, limit)),
    readTails: (asks, limit) => waitFor(selectTails(db, space, asks, limit)),
    readWrites: (asks, bound) => waitFor(selectWrites(db, space, asks, bound)),
    readLayers: (branch, asks) => waitFor(selectLayers(db, space, branch, asks)),
    listEntityIds: (query) => waitFor(selectEntityIds(db, space, query)),
    readLog: (cursor, bound) => waitFor(selectLog(db, space, cursor, bound)),
    readMerges: (a, b, limit) => waitFor(selectMerges(db, space, branchPair(a, b), limit)),
    findInvocation: (hash) => waitFor(selectInvocation(db, space, hash)),
  };
}

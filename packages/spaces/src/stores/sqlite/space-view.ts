// What may be asked of one space on SQLite, each by a statement of its own.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { ready } from "../../ports/flow.ts";
import type { SpaceRef } from "../../ports/rows.ts";
import type { SpaceView } from "../../ports.ts";
import { branchPair } from "../rows.ts";
import { selectBranches, selectBranchPage, selectMerges } from "./branch-rows.ts";
import { selectInvocation, selectLog } from "./commit-rows.ts";
import { selectEntityIds, selectLayer, selectTail, selectWrites } from "./entity-rows.ts";
import { selectSession, selectSpace, selectVerdicts } from "./session-rows.ts";

/** `db` is called for each question, before it is asked. */
export function viewOf(db: () => Sqlite, space: SpaceRef): SpaceView {
  const each = <Ask, Answer>(asks: readonly Ask[], answer: (on: Sqlite, ask: Ask) => Answer) => {
    const on = db();
    return asks.map((ask) => answer(on, ask));
  };
  return {
    entitiesPerLook: 1,
    findSpace: () => ready(() => selectSpace(db(), space)),
    findSession: (sessionId) => ready(() => selectSession(db(), space, sessionId)),
    findVerdicts: (sessionId, localSeqs) => ready(() => selectVerdicts(db(), space, sessionId, localSeqs)),
    findBranches: (names) => ready(() => selectBranches(db(), space, names)),
    listBranches: (after, limit) => ready(() => selectBranchPage(db(), space, after, limit)),
    readTails: (asks, limit) => ready(() => each(asks, (on, ask) => selectTail(on, space, ask, limit))),
    readWrites: (asks, bound) => ready(() => each(asks, (on, ask) => selectWrites(on, space, ask, bound))),
    readLayers: (branch, asks) => ready(() => each(asks, (on, ask) => selectLayer(on, space, branch, ask))),
    listEntityIds: (query) => ready(() => selectEntityIds(db(), space, query)),
    readLog: (cursor, bound) => ready(() => selectLog(db(), space, cursor, bound)),
    readMerges: (a, b, limit) => ready(() => selectMerges(db(), space, branchPair(a, b), limit)),
    findInvocation: (hash) => ready(() => selectInvocation(db(), space, hash)),
  };
}

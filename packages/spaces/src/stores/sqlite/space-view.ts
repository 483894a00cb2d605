// What may be asked of one space on SQLite, each by a statement of its own.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { SpaceRef } from "../../ports/rows.ts";
import { answerNow } from "../../ports/steps.ts";
import type { SpaceView } from "../../ports.ts";
import { branchPair } from "../branch-pair.ts";
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
    findSpace: () => answerNow(() => selectSpace(db(), space)),
    findSession: (sessionId) => answerNow(() => selectSession(db(), space, sessionId)),
    findVerdicts: (sessionId, localSeqs) => answerNow(() => selectVerdicts(db(), space, sessionId, localSeqs)),
    findBranches: (names) => answerNow(() => selectBranches(db(), space, names)),
    listBranches: (after, limit) => answerNow(() => selectBranchPage(db(), space, after, limit)),
    readTails: (asks, limit) => answerNow(() => each(asks, (on, ask) => selectTail(on, space, ask, limit))),
    readWrites: (asks, bound) => answerNow(() => each(asks, (on, ask) => selectWrites(on, space, ask, bound))),
    readLayers: (branch, asks) => answerNow(() => each(asks, (on, ask) => selectLayer(on, space, branch, ask))),
    listEntityIds: (query) => answerNow(() => selectEntityIds(db(), space, query)),
    readLog: (place, bound) => answerNow(() => selectLog(db(), space, place, bound)),
    readMerges: (a, b, limit) => answerNow(() => selectMerges(db(), space, branchPair(a, b), limit)),
    findInvocation: (hash) => answerNow(() => selectInvocation(db(), space, hash)),
  };
}

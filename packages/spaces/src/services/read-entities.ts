// Reads documents as of a seq, through the fork points of their branch. Asks in one go for as much as is usually needed
// and goes further back only where that did not reach a full document.

import { type Work, workCosts } from "@claudemesh/protocol/spaces/work";
import { type Branch, segmentsOf } from "../core/branch-lineage.ts";
import { assemble, charactersOf, type EntityState, type History } from "../core/entity-history.ts";
import type { Flow } from "../ports/flow.ts";
import type { Tail, TailAsk } from "../ports/rows.ts";
import type { SpaceView } from "../ports.ts";

export type EntityAsk = { readonly entityId: string; readonly branch: Branch; readonly atSeq: number };

/** Patches between two snapshots are fewer; where snapshots were deleted, the next step takes more. */
const firstTail = 32;
const growth = 16;

/** Looked for in one go; more at once where what was found is small, so that no look brings very much. */
const firstLook = 16;
const largestLook = 128;
const smallLookCharacters = 262_144;

/** After so much work the rest is left for another turn of the event loop. */
const workPerTurn = 4_000_000;

/** One state for each ask, in their order; undefined for what was never written. `work`: what all of it may cost. */
export function readEntities(
  view: SpaceView,
  asks: readonly EntityAsk[],
  work?: Work,
): Flow<(EntityState | undefined)[]> {
  return readInLooks(view, asks, work, () => false);
}

/** The same for as many of the first asks as fit into one turn, in groups of `together`, and for at least one group. */
export function readForTurn(
  view: SpaceView,
  asks: readonly EntityAsk[],
  work: Work,
  together = 1,
): Flow<(EntityState | undefined)[]> {
  const limit = work.spent + workPerTurn;
  return readInLooks(view, asks, work, (count) => count > 0 && count % together === 0 && work.spent >= limit);
}

type IsEnough = (count: number) => boolean;

function* readInLooks(
  view: SpaceView,
  asks: readonly EntityAsk[],
  work: Work | undefined,
  isEnough: IsEnough,
): Flow<(EntityState | undefined)[]> {
  const states: (EntityState | undefined)[] = [];
  const most = Math.min(largestLook, view.entitiesPerLook);
  for (let look = Math.min(firstLook, most); states.length < asks.length; ) {
    const some = asks.slice(states.length, states.length + look);
    const before = states.length;
    const characters = yield* readSome(view, some, work, states, isEnough);
    if (states.length < before + some.length || isEnough(states.length)) break;
    look = characters <= smallLookCharacters ? Math.min(look * 2, most) : Math.min(firstLook, most);
  }
  return states;
}

/** Adds to `states` until that is enough. Returns how many characters were read. */
function* readSome(
  view: SpaceView,
  asks: readonly EntityAsk[],
  work: Work | undefined,
  states: (EntityState | undefined)[],
  isEnough: IsEnough,
): Flow<number> {
  const perEntity = asks.map(({ entityId, branch, atSeq }) =>
    segmentsOf(branch, atSeq).map((segment): TailAsk => ({ ...segment, entityId })),
  );
  const all = perEntity.flat();
  work?.spend(all.length * workCosts.row);
  const tails = yield* view.readTails(all, firstTail);
  let start = 0;
  for (const [index, tailAsks] of perEntity.entries()) {
    if (isEnough(states.length)) break;
    const entityId = asks[index]?.entityId ?? "";
    const own = tails.slice(start, start + tailAsks.length);
    start += tailAsks.length;
    states.push(yield* finish(view, entityId, tailAsks, own, work));
  }
  return tails.reduce((sum, tail) => sum + charactersOf(tail), 0);
}

function* finish(
  view: SpaceView,
  entityId: string,
  tailAsks: readonly TailAsk[],
  first: readonly Tail[],
  work: Work | undefined,
): Flow<EntityState | undefined> {
  let tails = first;
  let limit = firstTail;
  for (;;) {
    const history: History = assemble(entityId, tails, limit, work);
    if (history.type === "whole") return history.state;
    if (history.type === "absent") return undefined;
    limit *= growth;
    tails = yield* view.readTails(tailAsks, limit);
  }
}

// Reads documents as of a seq, through the fork points of their branch. Asks in one go for as much as is usually needed
// and goes further back only where that did not reach a full document.

import { type Branch, segmentsOf } from "../core/branch-lineage.ts";
import { assemble, type EntityState, type History } from "../core/entity-history.ts";
import type { Tail, TailAsk } from "../ports/rows.ts";
import type { Steps } from "../ports/steps.ts";
import type { SpaceView } from "../ports.ts";

export type EntityAsk = { readonly entityId: string; readonly branch: Branch; readonly atSeq: number };

/** Patches between two snapshots are fewer; where snapshots were deleted, the next step takes more. */
const firstTail = 32;
const growth = 16;

/** One state for each ask, in their order; undefined: never written. */
export function* readEntities(view: SpaceView, asks: readonly EntityAsk[]): Steps<(EntityState | undefined)[]> {
  const lines = asks.map(({ entityId, branch, atSeq }) =>
    segmentsOf(branch, atSeq).map((segment): TailAsk => ({ ...segment, entityId })),
  );
  const tails = yield* view.readTails(lines.flat(), firstTail);
  const states: (EntityState | undefined)[] = [];
  let start = 0;
  for (const [index, line] of lines.entries()) {
    const entityId = asks[index]?.entityId ?? "";
    const own = tails.slice(start, start + line.length);
    start += line.length;
    states.push(yield* finish(view, entityId, line, own));
  }
  return states;
}

function* finish(
  view: SpaceView,
  entityId: string,
  line: readonly TailAsk[],
  first: readonly Tail[],
): Steps<EntityState | undefined> {
  let tails = first;
  let limit = firstTail;
  for (;;) {
    const history: History = assemble(entityId, tails, limit);
    if (history.type === "whole") return history.state;
    if (history.type === "absent") return undefined;
    limit *= growth;
    tails = yield* view.readTails(line, limit);
  }
}

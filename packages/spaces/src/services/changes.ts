// What changed on a branch since a seq, as the latest state of each entity: what a session needs to catch up. Exact with
// fork points: what an ancestor wrote up to the fork is part of the branch, what it wrote after it is not.
import type { Work } from "@claudemesh/protocol/spaces/work";
import { segmentsOf } from "../core/branch-lineage.ts";
import type { SpaceRef } from "../ports/rows.ts";
import type { SpacePorts } from "../ports.ts";
import { cursorBehind, type FoundEntity, rangeOf, readAt, resolveMoment } from "./query.ts";

export type ChangesQuery = {
  readonly branch?: string | undefined;
  /** Everything with a seq above this. */
  readonly sinceSeq: number;
  /** As of this seq, or of the present where it is left out. */
  readonly atSeq?: number | undefined;
  /** Counts what reading costs, and bounds it to one turn of the event loop. Everything is read where it is left out. */
  readonly work?: Work | undefined;
};

export type Changes = { readonly toSeq: number; readonly items: readonly FoundEntity[] };

/** Of these ids, or of as many of the first as were `read`, those that changed; deleted ones among them, without a document. */
export function changesOfIds(
  ports: Pick<SpacePorts, "store">,
  space: SpaceRef,
  query: ChangesQuery,
  ids: readonly string[],
): Promise<Changes & { readonly read: number }> {
  return ports.store.read(space, function* (view) {
    const moment = yield* resolveMoment(view, query);
    const { items, read } = yield* readAt(view, moment, ids, query.work);
    return { toSeq: moment.atSeq, items: items.filter(({ seq }) => seq > query.sinceSeq), read };
  });
}

export type ChangesPage = Changes & { readonly nextCursor: string | undefined };

/** Of the ids that begin with the prefix, a page at a time; pass `toSeq` on as `atSeq` to stay in one moment. */
export function changesByPrefix(
  ports: Pick<SpacePorts, "store">,
  space: SpaceRef,
  query: ChangesQuery & { readonly prefix: string; readonly cursor?: string | undefined; readonly limit: number },
): Promise<ChangesPage> {
  return ports.store.read(space, function* (view) {
    const moment = yield* resolveMoment(view, query);
    // An ancestor that shows through only up to what is known already has nothing new.
    const segments = segmentsOf(moment.branch, moment.atSeq).filter(({ upTo }) => upTo > query.sinceSeq);
    const ids = yield* view.listEntityIds({
      branches: segments.map(({ branch }) => branch),
      ...rangeOf(query.prefix, query.cursor),
      afterSeq: query.sinceSeq,
      limit: query.limit,
    });
    const { items: all, read } = yield* readAt(view, moment, ids, query.work);
    const items = all.filter(({ seq }) => seq > query.sinceSeq);
    return { toSeq: moment.atSeq, items, nextCursor: cursorBehind(ids, read, query.limit) };
  });
}

// Asks at once for what the bodies of one transaction will most likely ask for, behind the space's lock and in the same round
// trip, and puts the answers into the spaces cache. Otherwise each body would wait for an answer of its own, and all that
// come after it would wait for the space.
// Why: docs/tuning-log.md#what-commits-will-ask-for-is-asked-at-once.
import { assemble, charactersOf } from "../../core/entity-history.ts";
import { readFootprint } from "../../core/stale-reads.ts";
import type { Flow } from "../../ports/flow.ts";
import type { RowBound, Tail } from "../../ports/rows.ts";
import type { PrefetchHints, SpaceTransaction } from "../../ports.ts";
import type { SpaceCacheOverlay } from "./space-cache.ts";

/** Of all bodies together; a body asks for the rest itself. A document may have a megabyte. */
const writesMax = 256;
const documentsMax = 32;
/** More than these of one entity are not looked for here. */
const writesOfOne: RowBound = { rows: 64, bytes: 16_384 };
/** Of all texts that are read here, before anything is counted for the commit that needs them. */
const charactersMax = 262_144;
const patchesOfOne = 32;
/** Under the lock there is nothing later than the present. */
const present = Number.MAX_SAFE_INTEGER;

/** `trustsCache`: what the cache has is probably right, and not asked for again. */
export function* prefetch(
  tx: SpaceTransaction,
  cache: SpaceCacheOverlay,
  hints: readonly PrefetchHints[],
  trustsCache: boolean,
): Flow<void> {
  const isMissing = (cached: unknown) => !trustsCache || cached === undefined;
  const branches = [...new Set(hints.flatMap((each) => each.branches))].filter((name) => isMissing(cache.branch(name)));
  const writes = oldest(hints.flatMap((each) => each.writes))
    .filter((ask) => isMissing(cache.writes(ask.branch, ask.entityId, ask.afterSeq)))
    .slice(0, writesMax);
  const documents = distinct(hints.flatMap((each) => each.documents))
    .filter((ask) => isMissing(cache.state(ask.branch, ask.entityId)))
    .slice(0, documentsMax);
  if (writes.length === 0 && documents.length === 0) return;

  // The lock checks the cache before anything is added to it.
  const locking = tx.lockSpace();
  const finding = branches.length === 0 ? undefined : tx.findBranches(branches);
  const upToNow = <Ask>(ask: Ask) => ({ ...ask, upTo: present });
  const reading = writes.length === 0 ? undefined : tx.readWrites(writes.map(upToNow), writesOfOne);
  const looking = documents.length === 0 ? undefined : tx.readTails(documents.map(upToNow), patchesOfOne);
  if ((yield* locking) === undefined) return;
  for (const branch of finding === undefined ? [] : yield* finding) cache.addBranch(branch);
  for (const [index, found] of (reading === undefined ? [] : yield* reading).entries()) {
    const ask = writes[index];
    if (ask === undefined || found.cut) continue;
    const seen = found.writes.map(({ seq, footprint }) => ({ seq, footprint: readFootprint(footprint) }));
    cache.addWrites(ask.branch, ask.entityId, ask.afterSeq, seen);
  }
  let room = charactersMax;
  for (const [index, tail] of (looking === undefined ? [] : yield* looking).entries()) {
    const ask = documents[index];
    room -= charactersOf(tail);
    if (ask !== undefined && room >= 0) addDocument(cache, ask, tail);
  }
}

type EntityRef = { readonly branch: string; readonly entityId: string };

/** Of a branch that shows nothing but its own writes. */
function addDocument(cache: SpaceCacheOverlay, { branch, entityId }: EntityRef, tail: Tail): void {
  if (cache.branch(branch)?.lineage.length !== 0) return;
  const history = assemble(entityId, [tail], patchesOfOne);
  if (history.type !== "whole") return;
  const characters = charactersOf(tail);
  // It was made of these texts, each of which adds no more than it is long.
  cache.addState(branch, entityId, { ...history.state, charactersAtMost: characters }, characters);
}

const keyOf = ({ branch, entityId }: EntityRef) => `${branch}\0${entityId}`;

function distinct(entities: readonly EntityRef[]): EntityRef[] {
  return [...new Map(entities.map((each) => [keyOf(each), each])).values()];
}

/** One ask for each entity, that reaches as far back as any: of several entries with one key a map keeps the last. */
function oldest(asks: PrefetchHints["writes"]): PrefetchHints["writes"] {
  const latestFirst = asks.toSorted((a, b) => b.afterSeq - a.afterSeq);
  return [...new Map(latestFirst.map((ask) => [keyOf(ask), ask])).values()];
}

// Asks at once for what the bodies of one transaction are expected to ask for, behind the space's lock and in the same round
// trip, and lets them know it. Else each would wait for an answer of its own, and everybody for the space.
// Why: docs/tuning-log.md#what-commits-will-ask-for-is-asked-at-once.
import { assemble, charactersOf } from "../core/entity-history.ts";
import { readFootprint } from "../core/stale-reads.ts";
import type { Flow } from "../ports/flow.ts";
import type { RowBound, Tail } from "../ports/rows.ts";
import type { Expected, SpaceTransaction } from "../ports.ts";

/** Of all bodies together; what is beyond is asked for by whoever needs it. A document may have a megabyte. */
const writesMax = 256;
const documentsMax = 32;
/** More than these of one entity are not looked for here. */
const writesOfOne: RowBound = { rows: 64, bytes: 16_384 };
/** Of all texts that are read here, before anything is counted for the commit that needs them. */
const charactersMax = 262_144;
const patchesOfOne = 32;
/** Under the lock there is nothing later than the present. */
const present = Number.MAX_SAFE_INTEGER;

/** `believed`: what is known is probably so, and not asked for again. */
export function* foresee(tx: SpaceTransaction, expected: readonly Expected[], believed: boolean): Flow<void> {
  const { known } = tx;
  const branches = [...new Set(expected.flatMap((each) => each.branches))].filter(
    (name) => !believed || known.branch(name) === undefined,
  );
  const writes = oldest(expected.flatMap((each) => each.writes))
    .filter((ask) => !believed || known.writes(ask.branch, ask.entityId, ask.afterSeq) === undefined)
    .slice(0, writesMax);
  const documents = distinct(expected.flatMap((each) => each.documents))
    .filter((ask) => !believed || known.state(ask.branch, ask.entityId) === undefined)
    .slice(0, documentsMax);
  if (writes.length === 0 && documents.length === 0) return;

  const locking = tx.lockSpace();
  const finding = branches.length === 0 ? undefined : tx.findBranches(branches);
  const upToNow = <Ask>(ask: Ask) => ({ ...ask, upTo: present });
  const reading = writes.length === 0 ? undefined : tx.readWrites(writes.map(upToNow), writesOfOne);
  const looking = documents.length === 0 ? undefined : tx.readTails(documents.map(upToNow), patchesOfOne);
  const space = yield* locking;
  if (space === undefined) return;
  // Before anything is noted: what was known of another seq is forgotten here, and not by the first body.
  known.stand(space.lastSeq);
  for (const branch of finding === undefined ? [] : yield* finding) known.noteBranch(branch);
  for (const [index, found] of (reading === undefined ? [] : yield* reading).entries()) {
    const ask = writes[index];
    if (ask === undefined || found.cut) continue;
    const seen = found.writes.map(({ seq, footprint }) => ({ seq, footprint: readFootprint(footprint) }));
    known.noteWrites(ask.branch, ask.entityId, ask.afterSeq, seen);
  }
  let room = charactersMax;
  for (const [index, tail] of (looking === undefined ? [] : yield* looking).entries()) {
    const ask = documents[index];
    room -= charactersOf(tail);
    if (ask !== undefined && room >= 0) noteDocument(tx, ask, tail);
  }
}

type Place = { readonly branch: string; readonly entityId: string };

/** Of a branch that shows nothing but its own writes. */
function noteDocument({ known }: SpaceTransaction, { branch, entityId }: Place, tail: Tail): void {
  if (known.branch(branch)?.lineage.length !== 0) return;
  const history = assemble(entityId, [tail], patchesOfOne);
  if (history.type !== "whole") return;
  const characters = charactersOf(tail);
  // It was made of these texts, each of which adds no more than it is long.
  known.noteState(branch, entityId, { ...history.state, charactersAtMost: characters }, characters);
}

const placeOf = ({ branch, entityId }: Place) => `${branch}\0${entityId}`;

function distinct(places: readonly Place[]): Place[] {
  return [...new Map(places.map((each) => [placeOf(each), each])).values()];
}

/** One ask for each entity, that reaches as far back as any. */
function oldest(asks: Expected["writes"]): Expected["writes"] {
  const byPlace = new Map<string, Expected["writes"][number]>();
  for (const ask of asks) {
    const other = byPlace.get(placeOf(ask));
    if (other === undefined || ask.afterSeq < other.afterSeq) byPlace.set(placeOf(ask), ask);
  }
  return [...byPlace.values()];
}

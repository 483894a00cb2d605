// The present of a space inside a transaction: from what is known of it, and from the store where it is not.
import type { Footprint } from "@claudemesh/protocol/spaces/footprint";
import { type Work, workCosts } from "@claudemesh/protocol/spaces/work";
import type { Branch } from "../../core/branch-lineage.ts";
import type { EntityState } from "../../core/entity-history.ts";
import { type LaterWrites, readFootprint } from "../../core/stale-reads.ts";
import type { Flow } from "../../ports/flow.ts";
import type { LayerAsk, RowBound, WriteAsk } from "../../ports/rows.ts";
import type { SpaceTransaction } from "../../ports.ts";
import { readEntities } from "../read-entities.ts";

export type PresentAsk = { readonly entityId: string; readonly branch: Branch };

/** More later writes of one entity than these are not looked through. */
const writesLookedAt: RowBound = { rows: 1_000, bytes: 524_288 };

/** Entities whose writes are looked for at once; more at once where what was found is small. */
const firstLook = 64;
const largestLook = 1_024;
const smallLookCharacters = 262_144;
/** Layers of pending reads looked for at once, each of which may be as large as a commit. */
const layersPerLook = 64;

/** One state for each ask, in their order; undefined: never written. */
export function* readPresent(
  tx: SpaceTransaction,
  asks: readonly PresentAsk[],
  lastSeq: number,
  work: Work,
): Flow<(EntityState | undefined)[]> {
  const states = asks.map(({ branch, entityId }) => tx.known.state(branch.name, entityId));
  return yield* fillGaps(states, (gaps) =>
    readEntities(
      tx,
      gaps.flatMap((gap) => asks[gap] ?? []).map((ask) => ({ ...ask, atSeq: lastSeq })),
      work,
    ),
  );
}

/** For each ask, in their order. Asks of one branch that another shows through go back no further than they say. */
export function* readLater(
  tx: SpaceTransaction,
  asks: readonly WriteAsk[],
  lastSeq: number,
  work: Work,
): Flow<LaterWrites[]> {
  const found = asks.map(({ branch, entityId, afterSeq, upTo }): LaterWrites | undefined => {
    const writes = upTo < lastSeq ? undefined : tx.known.writes(branch, entityId, afterSeq);
    return writes && { writes, cut: false };
  });
  const filled = yield* fillGaps(found, (gaps) =>
    readStored(
      tx,
      gaps.flatMap((gap) => asks[gap] ?? []),
      work,
    ),
  );
  return filled.map((each) => each ?? { writes: [], cut: false });
}

function* readStored(tx: SpaceTransaction, asks: readonly WriteAsk[], work: Work): Flow<LaterWrites[]> {
  const found: LaterWrites[] = [];
  const most = Math.min(largestLook, tx.entitiesPerLook);
  for (let look = Math.min(firstLook, most); found.length < asks.length; ) {
    const some = asks.slice(found.length, found.length + look);
    work.spend(some.length * workCosts.row);
    let characters = 0;
    for (const { writes, cut } of yield* tx.readWrites(some, writesLookedAt)) {
      const length = writes.reduce((sum, { footprint }) => sum + footprint.length, 0);
      characters += length;
      work.spend(length * workCosts.character);
      found.push({ writes: writes.map(({ seq, footprint }) => ({ seq, footprint: readFootprint(footprint) })), cut });
    }
    look = characters <= smallLookCharacters ? Math.min(look * 2, most) : Math.min(firstLook, most);
  }
  return found;
}

/** For each ask, in their order: what the commit of that seq did to the entity. No ask comes twice. */
export function* readPresentLayers(
  tx: SpaceTransaction,
  branch: string,
  asks: readonly LayerAsk[],
  work: Work,
): Flow<(readonly Footprint[])[]> {
  const found = asks.map(({ entityId, seq }) => tx.known.layer(branch, entityId, seq));
  const filled = yield* fillGaps(found, function* (gaps): Flow<Footprint[][]> {
    const layers: Footprint[][] = [];
    const look = Math.min(layersPerLook, tx.entitiesPerLook);
    for (let at = 0; at < gaps.length; at += look) {
      const some = gaps.slice(at, at + look).flatMap((gap) => asks[gap] ?? []);
      work.spend(some.length * workCosts.row);
      for (const rows of yield* tx.readLayers(branch, some)) {
        work.spend(rows.reduce((sum, { footprint }) => sum + footprint.length, 0) * workCosts.character);
        layers.push(rows.map(({ footprint }) => readFootprint(footprint)));
      }
    }
    return layers;
  });
  return filled.map((each) => each ?? []);
}

/** Those of the names that exist. */
export function* readPresentBranches(tx: SpaceTransaction, names: ReadonlySet<string>): Flow<Branch[]> {
  const asked = [...names];
  const found = asked.map((name) => tx.known.branch(name));
  const unknown = asked.filter((_, index) => found[index] === undefined);
  const read = unknown.length === 0 ? [] : yield* tx.findBranches(unknown);
  for (const branch of read) tx.known.noteBranch(branch);
  return [...found.flatMap((branch) => branch ?? []), ...read];
}

/** Asks once for all that is not known, by their places. */
function* fillGaps<T>(
  known: readonly (T | undefined)[],
  read: (gaps: readonly number[]) => Flow<readonly (T | undefined)[]>,
): Flow<(T | undefined)[]> {
  const gaps = [...known.keys()].filter((place) => known[place] === undefined);
  if (gaps.length === 0) return [...known];
  const answers = yield* read(gaps);
  const filled = [...known];
  for (const [index, place] of gaps.entries()) filled[place] = answers[index];
  return filled;
}

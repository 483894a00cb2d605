// The present of a space inside a transaction: from what is known of it, and from the store where it is not.
import type { Footprint } from "@claudemesh/protocol/spaces/footprint";
import type { Branch } from "../../core/branch-lineage.ts";
import type { EntityState } from "../../core/entity-history.ts";
import { type LaterWrites, readFootprint } from "../../core/stale-reads.ts";
import type { LayerAsk, WriteAsk } from "../../ports/rows.ts";
import type { Steps } from "../../ports/steps.ts";
import type { SpaceTransaction } from "../../ports.ts";
import { readEntities } from "../read-entities.ts";

export type PresentAsk = { readonly entityId: string; readonly branch: Branch };

/** More later writes of one entity than this are not looked through. */
const writesLookedAt = 1_000;

/** One state for each ask, in their order; undefined: never written. */
export function* readPresent(
  tx: SpaceTransaction,
  asks: readonly PresentAsk[],
  lastSeq: number,
): Steps<(EntityState | undefined)[]> {
  const states = asks.map(({ branch, entityId }) => tx.known.state(branch.name, entityId));
  return yield* fillGaps(states, (gaps) =>
    readEntities(
      tx,
      gaps.flatMap((gap) => asks[gap] ?? []).map((ask) => ({ ...ask, atSeq: lastSeq })),
    ),
  );
}

/** For each ask, in their order. Asks of one branch that another shows through go back no further than they say. */
export function* readLater(tx: SpaceTransaction, asks: readonly WriteAsk[], lastSeq: number): Steps<LaterWrites[]> {
  const found = asks.map(({ branch, entityId, afterSeq, upTo }): LaterWrites | undefined => {
    const writes = upTo < lastSeq ? undefined : tx.known.writes(branch, entityId, afterSeq);
    return writes && { writes, cut: false };
  });
  const filled = yield* fillGaps(found, function* (gaps): Steps<LaterWrites[]> {
    const rows = yield* tx.readWrites(
      gaps.flatMap((gap) => asks[gap] ?? []),
      writesLookedAt,
    );
    return rows.map((each) => ({
      writes: each.map(({ seq, footprint }) => ({ seq, footprint: readFootprint(footprint) })),
      cut: each.length >= writesLookedAt,
    }));
  });
  return filled.map((each) => each ?? { writes: [], cut: false });
}

/** For each ask, in their order: what the commit of that seq did to the entity. */
export function* readPresentLayers(
  tx: SpaceTransaction,
  branch: string,
  asks: readonly LayerAsk[],
): Steps<(readonly Footprint[])[]> {
  const found = asks.map(({ entityId, seq }) => tx.known.layer(branch, entityId, seq));
  const filled = yield* fillGaps(found, function* (gaps): Steps<Footprint[][]> {
    const rows = yield* tx.readLayers(
      branch,
      gaps.flatMap((gap) => asks[gap] ?? []),
    );
    return rows.map((each) => each.map(({ footprint }) => readFootprint(footprint)));
  });
  return filled.map((each) => each ?? []);
}

/** Those of the names that exist. */
export function* readPresentBranches(tx: SpaceTransaction, names: ReadonlySet<string>): Steps<Branch[]> {
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
  read: (gaps: readonly number[]) => Steps<readonly (T | undefined)[]>,
): Steps<(T | undefined)[]> {
  const gaps = [...known.keys()].filter((place) => known[place] === undefined);
  if (gaps.length === 0) return [...known];
  const answers = yield* read(gaps);
  const filled = [...known];
  for (const [index, place] of gaps.entries()) filled[place] = answers[index];
  return filled;
}

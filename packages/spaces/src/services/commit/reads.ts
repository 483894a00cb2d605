// Validation: every read of a commit, confirmed or pending, against the writes since. Names all that are stale at once,
// with what is there now. Reads only.
import type { EntityDocument } from "@claudemesh/protocol/spaces/entity";
import { encodeFabric } from "@claudemesh/protocol/spaces/fabric-value";
import { valueAt } from "@claudemesh/protocol/spaces/value-at";
import { Work, workCosts } from "@claudemesh/protocol/spaces/work";
import { segmentsOf } from "../../core/branch-lineage.ts";
import type { EntityState } from "../../core/entity-history.ts";
import { isStale, type LaterToCheck, prepareLater, type ReadToCheck } from "../../core/stale-reads.ts";
import type { Flow } from "../../ports/flow.ts";
import type { WriteAsk } from "../../ports/rows.ts";
import type { SpaceTransaction } from "../../ports.ts";

export type ConflictDetail = {
  readonly id: string;
  readonly branch: string;
  readonly path: readonly string[];
  readonly expected: { readonly seq: number };
  readonly actual: { readonly seq: number; readonly value?: unknown };
};

/** A verdict is kept for ever, so that what it shows of the present is bounded; the rest can be read. */
const shownValueBytes = 262_144;

/** What looking at the present of stale entities may cost; a conflict beyond it names the seq alone. */
const describingWork = 10_000_000;

export function* findConflicts(
  tx: SpaceTransaction,
  reads: readonly ReadToCheck[],
  lastSeq: number,
  work: Work,
): Flow<ConflictDetail[]> {
  const later = yield* readLaterWrites(tx, reads, lastSeq, work);
  const stale = reads.filter((read) =>
    isStale(read, segmentsOf(read.branch, lastSeq), (branch) => later(branch, read.entityId), work),
  );
  return stale.length === 0 ? [] : yield* describe(tx, stale, later, lastSeq);
}

type LaterWritesOf = (branch: string, entityId: string) => LaterToCheck;

/** One look for each entity and branch, from the oldest read of it on. */
function* readLaterWrites(
  tx: SpaceTransaction,
  reads: readonly ReadToCheck[],
  lastSeq: number,
  work: Work,
): Flow<LaterWritesOf> {
  const asks = new Map<string, { readonly ask: WriteAsk; readonly reads: number }>();
  for (const { entityId, branch, fromSeq, path } of reads) {
    work.spend(path.length * workCosts.keyIndexed);
    for (const segment of segmentsOf(branch, lastSeq)) {
      work.spend(workCosts.read);
      if (segment.upTo <= fromSeq) continue;
      const key = keyOf(segment.branch, entityId);
      const known = asks.get(key);
      const afterSeq = Math.min(fromSeq, known?.ask.afterSeq ?? fromSeq);
      const upTo = Math.max(segment.upTo, known?.ask.upTo ?? segment.upTo);
      asks.set(key, { ask: { branch: segment.branch, entityId, afterSeq, upTo }, reads: (known?.reads ?? 0) + 1 });
    }
  }
  const wanted = [...asks.values()];
  const found = yield* tx.present.laterWrites(
    wanted.map(({ ask }) => ask),
    work,
  );
  const prepared = found.map((later, index) => prepareLater(later, wanted[index]?.reads ?? 0, work));
  const byKey = new Map([...asks.keys()].map((key, index) => [key, prepared[index]]));
  return (branch, entityId) => byKey.get(keyOf(branch, entityId)) ?? { writes: [], cut: false, index: undefined };
}

function keyOf(branch: string, entityId: string): string {
  return `${branch}\0${entityId}`;
}

function* describe(
  tx: SpaceTransaction,
  stale: readonly ReadToCheck[],
  later: LaterWritesOf,
  lastSeq: number,
): Flow<ConflictDetail[]> {
  const states = yield* readShown(tx, stale, lastSeq);
  let room = shownValueBytes;
  return stale.map((read): ConflictDetail => {
    const { branch, entityId, path, expectedSeq } = read;
    const state = states.get(keyOf(branch.name, entityId));
    const seq = Math.max(state?.seq ?? newestSeqOf(read, later, lastSeq), branch.deletedSeq ?? 0);
    // Once the answer is full, the other values are not even measured.
    const shown = room < 0 ? undefined : showValue(state?.document, path);
    room -= shown?.bytes ?? 0;
    const actual = shown === undefined || room < 0 ? { seq } : { seq, value: shown.value };
    return { id: entityId, branch: branch.name, path, expected: { seq: expectedSeq }, actual };
  });
}

/** The present of the stale entities, as many of them as may be looked at. */
function* readShown(
  tx: SpaceTransaction,
  stale: readonly ReadToCheck[],
  lastSeq: number,
): Flow<ReadonlyMap<string, EntityState | undefined>> {
  const asks = [...new Map(stale.map((read) => [keyOf(read.branch.name, read.entityId), read]))];
  const states = new Map<string, EntityState | undefined>();
  const work = new Work();
  for (let look = 1; states.size < asks.length && work.spent < describingWork; look *= 2) {
    const some = asks.slice(states.size, states.size + look);
    const found = yield* tx.present.states(
      some.map(([, read]) => read),
      lastSeq,
      work,
    );
    for (const [index, [key]] of some.entries()) states.set(key, found[index]);
    if (work.spent > describingWork / 16) look = 1;
  }
  return states;
}

/** The newest of the writes that were looked at. They are the newest writes there are. */
function newestSeqOf({ branch, entityId }: ReadToCheck, later: LaterWritesOf, lastSeq: number): number {
  const newest = segmentsOf(branch, lastSeq).flatMap((segment) => {
    return later(segment.branch, entityId).writes.find(({ seq }) => seq <= segment.upTo)?.seq ?? [];
  });
  return Math.max(0, ...newest);
}

function showValue(
  document: EntityDocument | undefined,
  path: readonly string[],
): { readonly value: unknown; readonly bytes: number } | undefined {
  const found = valueAt(document, path);
  if (!found.exists) return undefined;
  const value = encodeFabric(found.value);
  return { value, bytes: JSON.stringify(value).length };
}

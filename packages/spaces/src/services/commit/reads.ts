// Validation: every read of a commit, confirmed or pending, against the writes since. Names all that are stale at once,
// with what is there now. Reads only.
import type { EntityDocument } from "@claudemesh/protocol/spaces/entity";
import { encodeFabric } from "@claudemesh/protocol/spaces/fabric-value";
import { valueAt } from "@claudemesh/protocol/spaces/value-at";
import { segmentsOf } from "../../core/branch-lineage.ts";
import { isStale, type LaterWrites, type ReadToCheck } from "../../core/stale-reads.ts";
import type { WriteAsk } from "../../ports/rows.ts";
import type { Steps } from "../../ports/steps.ts";
import type { SpaceTransaction } from "../../ports.ts";
import { readLater, readPresent } from "./present.ts";

export type ConflictDetail = {
  readonly id: string;
  readonly branch: string;
  readonly path: readonly string[];
  readonly expected: { readonly seq: number };
  readonly actual: { readonly seq: number; readonly value?: unknown };
};

/** A verdict is kept for ever, so that what it shows of the present is bounded; the rest can be read. */
const shownValueBytes = 262_144;

export function* findConflicts(
  tx: SpaceTransaction,
  reads: readonly ReadToCheck[],
  lastSeq: number,
): Steps<ConflictDetail[]> {
  const later = yield* readLaterWrites(tx, reads, lastSeq);
  const stale = reads.filter((read) =>
    isStale(read, segmentsOf(read.branch, lastSeq), (branch) => later(branch, read.entityId)),
  );
  return stale.length === 0 ? [] : yield* describe(tx, stale, lastSeq);
}

type LaterWritesOf = (branch: string, entityId: string) => LaterWrites;

/** One look for each entity and branch, from the oldest read of it on. */
function* readLaterWrites(tx: SpaceTransaction, reads: readonly ReadToCheck[], lastSeq: number): Steps<LaterWritesOf> {
  const asks = new Map<string, WriteAsk>();
  for (const { entityId, branch, fromSeq } of reads) {
    for (const segment of segmentsOf(branch, lastSeq)) {
      if (segment.upTo <= fromSeq) continue;
      const key = keyOf(segment.branch, entityId);
      const known = asks.get(key);
      const afterSeq = Math.min(fromSeq, known?.afterSeq ?? fromSeq);
      const upTo = Math.max(segment.upTo, known?.upTo ?? segment.upTo);
      asks.set(key, { branch: segment.branch, entityId, afterSeq, upTo });
    }
  }
  const found = yield* readLater(tx, [...asks.values()], lastSeq);
  const byKey = new Map([...asks.keys()].map((key, index) => [key, found[index]]));
  return (branch, entityId) => byKey.get(keyOf(branch, entityId)) ?? { writes: [], cut: false };
}

function keyOf(branch: string, entityId: string): string {
  return `${branch}\0${entityId}`;
}

function* describe(tx: SpaceTransaction, stale: readonly ReadToCheck[], lastSeq: number): Steps<ConflictDetail[]> {
  const asks = new Map(stale.map((read) => [keyOf(read.branch.name, read.entityId), read]));
  const states = yield* readPresent(tx, [...asks.values()], lastSeq);
  const byKey = new Map([...asks.keys()].map((key, index) => [key, states[index]]));
  let room = shownValueBytes;
  return stale.map((read): ConflictDetail => {
    const state = byKey.get(keyOf(read.branch.name, read.entityId));
    const seq = Math.max(state?.seq ?? 0, read.branch.deletedSeq ?? 0);
    const shown = showValue(state?.document, read.path);
    room -= shown?.bytes ?? 0;
    return {
      id: read.entityId,
      branch: read.branch.name,
      path: read.path,
      expected: { seq: read.expectedSeq },
      actual: shown === undefined || room < 0 ? { seq } : { seq, value: shown.value },
    };
  });
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

// Whether a read still holds: no write that it does not know of overlaps it. Pure; the writes come from the store.
// Why: docs/decisions/0117.
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import { type Footprint, footprintOverlaps, type PathRead } from "@claudemesh/protocol/spaces/footprint";
import { TouchIndex } from "@claudemesh/protocol/spaces/touch-index";
import { comparisonCost, type Work } from "@claudemesh/protocol/spaces/work";
import type { Branch, Segment } from "./branch-lineage.ts";

/** One read, confirmed or pending, as it is checked. */
export type ReadToCheck = {
  readonly entityId: string;
  readonly branch: Branch;
  /** What a write must overlap to matter. */
  readonly scan: readonly PathRead[];
  /** Writes after this seq are not known to the reader. */
  readonly fromSeq: number;
  /** Writes of its own that the reader has seen nevertheless. */
  readonly ignoreSeqs: ReadonlySet<number>;
  /** As the client named it, for the answer. */
  readonly path: readonly string[];
  readonly expectedSeq: number;
};

/** The text that a revision keeps of its footprint. */
export function readFootprint(text: string): Footprint {
  return parseOwnJsonText(text) as unknown as Footprint;
}

export type SeenWrite = { readonly seq: number; readonly footprint: Footprint };

/** Later writes of an entity on one branch, newest first. */
export type LaterWrites = {
  readonly writes: readonly SeenWrite[];
  /** There are more, older than these. */
  readonly cut: boolean;
};

/** Later writes as many reads are checked against them. */
export type LaterToCheck = LaterWrites & { readonly index: TouchIndex | undefined };

/** From so many reads and touches on, an index costs less than comparing each with each. */
const indexedFrom = { reads: 8, touches: 64 };

/** `reads`: how many will be checked against these writes. */
export function prepareLater(later: LaterWrites, reads: number, work: Work): LaterToCheck {
  const touches = later.writes.reduce((count, { footprint }) => count + footprint.length, 0);
  if (reads < indexedFrom.reads || touches < indexedFrom.touches) return { ...later, index: undefined };
  const index = new TouchIndex(work);
  for (const { seq, footprint } of later.writes) index.add(seq, footprint);
  return { ...later, index };
}

/**
 * SPC-2: true whenever a write that the read did not see may have changed what it saw. Where there are more writes than
 * were looked at, the read counts as stale: a retry is cheap, a missed overlap is corruption.
 */
export function isStale(
  read: ReadToCheck,
  segments: readonly Segment[],
  laterOn: (branch: string) => LaterToCheck,
  work: Work,
): boolean {
  if (read.branch.deletedSeq !== undefined && read.branch.deletedSeq > read.fromSeq) return true;
  return segments.some(({ branch, upTo }) => {
    if (upTo <= read.fromSeq) return false;
    const { writes, cut, index } = laterOn(branch);
    const oldest = writes.at(-1);
    if (cut && oldest !== undefined && oldest.seq > read.fromSeq) return true;
    if (index !== undefined) {
      const newest = Math.max(...read.scan.map((one) => index.newestOverlap(one)));
      if (newest <= read.fromSeq) return false;
      if (newest <= upTo && !read.ignoreSeqs.has(newest)) return true;
    }
    return isOverlapped(read, writes, upTo, work);
  });
}

/** Compares the read with each of the writes. */
function isOverlapped(read: ReadToCheck, writes: readonly SeenWrite[], upTo: number, work: Work): boolean {
  const perTouch = read.scan.reduce((sum, { path }) => sum + comparisonCost(path), 0);
  return writes.some(({ seq, footprint }) => {
    if (seq <= read.fromSeq || seq > upTo || read.ignoreSeqs.has(seq)) return false;
    work.spend(footprint.length * perTouch);
    return read.scan.some((one) => footprintOverlaps(footprint, one));
  });
}

// Whether a read still holds: no write that it does not know of overlaps it. Pure; the writes come from the store.
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import { type Footprint, footprintOverlaps, type PathRead } from "@claudemesh/protocol/spaces/footprint";
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

/**
 * SPC-2: true whenever a write that the read did not see may have changed what it saw. Where there are more writes than
 * were looked at, the read counts as stale: a retry is cheap, a missed overlap is corruption.
 */
export function isStale(
  read: ReadToCheck,
  segments: readonly Segment[],
  laterOn: (branch: string) => LaterWrites,
): boolean {
  if (read.branch.deletedSeq !== undefined && read.branch.deletedSeq > read.fromSeq) return true;
  return segments.some(({ branch, upTo }) => {
    if (upTo <= read.fromSeq) return false;
    const { writes, cut } = laterOn(branch);
    const oldest = writes.at(-1);
    if (cut && oldest !== undefined && oldest.seq > read.fromSeq) return true;
    return writes.some(({ seq, footprint }) => {
      if (seq <= read.fromSeq || seq > upTo || read.ignoreSeqs.has(seq)) return false;
      return read.scan.some((one) => footprintOverlaps(footprint, one));
    });
  });
}

// SPC-3, the soundness of pending reads: a read that saw this session's own unconfirmed commits depends on those layers
// and on the confirmed state under them. Pure: this file decides which writes must be checked and which may be ignored;
// the engine checks them. When in doubt it checks more, or asks for a basis: that costs a retry, and never data.
// Why: docs/decisions/0020.
import type { EntityId, ReadPath } from "./entity.ts";
import {
  type Footprint,
  movedPaths,
  movesContent,
  type PathRead,
  possibleArrays,
  type Touch,
  touchCovers,
  touchOverlaps,
} from "./touch.ts";
import { comparisonCost, type Work } from "./work.ts";

/** The form in a commit: one entry per layer. */
export type PendingRead = {
  readonly id: EntityId;
  readonly path: ReadPath;
  readonly localSeq: number;
  /** The confirmed seq under the stack of layers. */
  readonly basisSeq?: number;
  readonly shallow?: boolean;
};

/** Entries with the same id and path are one read that names all their layers. */
export type GroupedPendingRead = {
  readonly id: EntityId;
  readonly path: ReadPath;
  readonly shallow?: boolean;
  readonly basisSeq?: number;
  /** In ascending order, without duplicates. */
  readonly localSeqs: readonly number[];
};

/**
 * A named layer: an accepted commit of this session, with the footprints of its operations on the entity that was read.
 */
export type NamedLayer = { readonly seq: number; readonly footprints: readonly Footprint[] };

export type PendingReadDecision =
  /** Stale iff a write with a seq above `fromSeq` that is not in `ignoreSeqs` overlaps one of `scan`. */
  | {
      readonly kind: "scan";
      readonly scan: readonly PathRead[];
      readonly fromSeq: number;
      readonly ignoreSeqs: readonly number[];
    }
  | { readonly kind: "basis_required" };

/** Where entries of one read disagree, the safe value wins: deep before shallow, the lowest basis. */
export function groupPendingReads(reads: readonly PendingRead[]): GroupedPendingRead[] {
  const groups = new Map<string, PendingRead[]>();
  for (const read of reads) {
    const key = JSON.stringify([read.id, ...read.path]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [read]);
    else group.push(read);
  }
  return [...groups.values()].map(joinEntries);
}

function joinEntries(entries: readonly PendingRead[]): GroupedPendingRead {
  const [{ id, path }] = entries as [PendingRead];
  const bases = entries.flatMap(({ basisSeq }) => (basisSeq === undefined ? [] : [basisSeq]));
  return {
    id,
    path,
    localSeqs: [...new Set(entries.map(({ localSeq }) => localSeq))].sort((a, b) => a - b),
    ...(entries.every(({ shallow }) => shallow === true) && { shallow: true }),
    ...(bases.length > 0 && { basisSeq: bases.reduce((a, b) => Math.min(a, b)) }),
  };
}

/** `layers`: those that the read names, in the order in which they were accepted. `work` counts what is compared. */
export function decidePendingRead(
  read: PathRead & { readonly basisSeq?: number },
  layers: readonly NamedLayer[],
  work?: Work,
): PendingReadDecision {
  const plainRead: PathRead = read.shallow === true ? { path: read.path, shallow: true } : { path: read.path };
  const touches = layers.flatMap(({ footprints }) => footprints.flat());
  work?.spend(touches.length * comparisonCost(read.path));
  if (read.basisSeq === undefined) return decideByCover(plainRead, layers);
  return {
    kind: "scan",
    scan: spreadOverMoves(plainRead, touches, work),
    fromSeq: read.basisSeq,
    ignoreSeqs: layers.map(({ seq }) => seq),
  };
}

/**
 * Beyond this many moves, following them costs more than it saves, and the read counts as one of the whole document.
 */
const maxMovesFollowed = 64;

/**
 * Content that a named layer moved is visible at the read path though it was written elsewhere. So the read counts as
 * one of the whole array and of a move's source and target, and each of these again as a read, until nothing is added.
 */
export function spreadOverMoves(read: PathRead, touches: readonly Touch[], work?: Work): PathRead[] {
  const moves = touches.filter(movesContent);
  if (moves.length > maxMovesFollowed) {
    return moves.some((touch) => touchOverlaps(touch, read)) ? [{ path: [] }] : [read];
  }
  const reads: PathRead[] = [read];
  let waiting = moves;
  // The list grows while it is walked.
  for (const one of reads) {
    // Each is compared with the moves that are left, and what they add with those that are there.
    work?.spend((waiting.length + reads.length) * comparisonCost(one.path));
    const reached = waiting.filter((touch) => touchOverlaps(touch, one));
    waiting = waiting.filter((touch) => !reached.includes(touch));
    for (const path of reached.flatMap(movedPaths)) {
      if (!reads.some((known) => isSameDeepRead(known, path))) reads.push({ path });
    }
  }
  return reads;
}

function isSameDeepRead(read: PathRead, path: ReadPath): boolean {
  return read.shallow !== true && read.path.length === path.length && path.every((key, at) => key === read.path[at]);
}

/** Without a basis, only a layer that wrote everything that was read makes the state under it irrelevant. */
function decideByCover(read: PathRead, layers: readonly NamedLayer[]): PendingReadDecision {
  const touches = layers.flatMap(({ seq, footprints }) => footprints.flat().map((touch) => ({ seq, touch })));
  const coverIndex = touches.findLastIndex(({ touch }) => touchCovers(touch, read.path));
  const cover = touches[coverIndex];
  if (cover === undefined) return { kind: "basis_required" };
  const later = touches.slice(coverIndex + 1);
  if (later.some(({ touch }) => mayMoveInto(touch, read))) return { kind: "basis_required" };
  return {
    kind: "scan",
    scan: [read],
    fromSeq: cover.seq,
    ignoreSeqs: layers.map(({ seq }) => seq).filter((seq) => seq > cover.seq),
  };
}

/**
 * The state under the stack is unknown here: what is an object now may have been an array when the client read it, so a
 * key that looks like an index counts as one.
 */
function mayMoveInto(touch: Touch, read: PathRead): boolean {
  if (movesContent(touch) && touchOverlaps(touch, read)) return true;
  return possibleArrays(touch).some((array) => touchOverlaps({ kind: "shift", path: array }, { path: read.path }));
}

// The trace of one patch in a footprint: where it wrote, what it covers, what it moved. Touches are made where
// operations are applied, in apply.ts, because what an `add` touches depends on what was there. When in doubt a touch
// names more than was written (SPC-2).
import type { ReadPath } from "./entity.ts";
import { isIndex, startsWithPath } from "./pointer.ts";

/** A path that a write touched: everything at `path` and below may be new, and its container has changed. */
export type Spot = {
  readonly path: ReadPath;
  /**
   * The keys of the operation's own path below `path`, where it created parents: then `path` is the highest one
   * created.
   */
  readonly made?: ReadPath;
  /** The last key of `path` existed before and exists after, so that its container has the same keys. */
  readonly keeps?: true;
  /** The last key of the operation's own path looks like an index: in another state this may be an edit of an array. */
  readonly indexed?: true;
};

export type Touch =
  /** A write at one path. `covers`: the value at the operation's own path no longer depends on what was there. */
  | (Spot & { readonly kind: "write"; readonly covers?: true })
  /** An edit of an array that gives items another index. `path` is the array, or the highest parent created. */
  | (Spot & { readonly kind: "shift" })
  /** Content that moved from one path to another. */
  | { readonly kind: "move"; readonly from: Spot; readonly to: Spot };

/** In the order in which the patches ran. It is plain JSON. */
export type Footprint = readonly Touch[];

/**
 * `shallow`: the read saw only which keys exist (for an array, how many items), and whether there is a value at all.
 */
export type PathRead = { readonly path: ReadPath; readonly shallow?: boolean };

export function touchOverlaps(touch: Touch, read: PathRead): boolean {
  return touch.kind === "move"
    ? spotOverlaps(touch.from, read) || spotOverlaps(touch.to, read)
    : spotOverlaps(touch, read);
}

function spotOverlaps(spot: Spot, read: PathRead): boolean {
  if (startsWithPath(read.path, spot.path)) return true;
  if (!startsWithPath(spot.path, read.path)) return false;
  if (read.shallow !== true) return true;
  // A write below one of the keys leaves the keys unchanged; for a write at a key, the spot says whether it does.
  return spot.path.length === read.path.length + 1 && spot.keeps !== true;
}

/** Whether the value at `path` after the touch is independent of what was there before. */
export function touchCovers(touch: Touch, path: ReadPath): boolean {
  return touch.kind === "write" && touch.covers === true && startsWithPath(path, operationPath(touch));
}

export function movesContent(touch: Touch): boolean {
  return touch.kind !== "write";
}

/** The paths between which a touch moves content: an array, or the source and target of a move. */
export function movedPaths(touch: Touch): readonly ReadPath[] {
  if (touch.kind === "write") return [];
  return touch.kind === "move" ? [touch.from.path, touch.to.path] : [touch.path];
}

/** The arrays that the touch would have edited if its parents were arrays; the root is never one. */
export function possibleArrays(touch: Touch): readonly ReadPath[] {
  const spots = touch.kind === "move" ? [touch.from, touch.to] : [touch];
  return spots.filter((spot) => spot.indexed === true).map((spot) => operationPath(spot).slice(0, -1));
}

/** Whether the last key would be an index if its parent were an array. */
export function looksIndexed(path: ReadPath): boolean {
  return path.length > 1 && isIndex(path.at(-1) ?? "");
}

function operationPath(spot: Spot): ReadPath {
  return spot.made === undefined ? spot.path : [...spot.path, ...spot.made];
}

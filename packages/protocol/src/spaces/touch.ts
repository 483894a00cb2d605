// One patch's trace in a footprint: where it wrote, what it covers, what it moved. Touches are made where operations are
// applied, in apply.ts, because what an `add` touches depends on what was there. Erring means naming more (SPC-2).
import type { ReadPath } from "./entity.ts";
import { isIndex, startsWithPath } from "./pointer.ts";

/** A place that a write touched: everything at `path` and below may be new, and what contains it has changed. */
export type Spot = {
  readonly path: ReadPath;
  /** The keys of the operation's own path below `path`, when it made parents: then `path` is the highest one made. */
  readonly made?: ReadPath;
  /** The last key of `path` was there before and is there after, so that the keys of what contains it are the same. */
  readonly keeps?: true;
  /** The last key of the operation's own path looks like an index: on another state this may be an array's edit. */
  readonly indexed?: true;
};

export type Touch =
  /** A write at one place. `covers`: the value at the operation's own path no longer depends on what was there. */
  | (Spot & { readonly kind: "write"; readonly covers?: true })
  /** An edit of an array that gives items another index. `path` is the array, or the highest parent made. */
  | (Spot & { readonly kind: "shift" })
  /** Content that went from one place to another. */
  | { readonly kind: "move"; readonly from: Spot; readonly to: Spot };

/** In the order in which the patches ran. JSON. */
export type Footprint = readonly Touch[];

/** `shallow`: only which keys there are (an array: how many items), and whether there is anything at all. */
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
  // Below a key of the place read, that key stays; at it, the spot says whether it stays.
  return spot.path.length === read.path.length + 1 && spot.keeps !== true;
}

/** Whether what is read at `path` after the touch is the same whatever was there before. */
export function touchCovers(touch: Touch, path: ReadPath): boolean {
  return touch.kind === "write" && touch.covers === true && startsWithPath(path, operationPath(touch));
}

export function movesContent(touch: Touch): boolean {
  return touch.kind !== "write";
}

/** The paths whose content a moving touch mixes: an array, or a move's source and target. */
export function movedPaths(touch: Touch): readonly ReadPath[] {
  if (touch.kind === "write") return [];
  return touch.kind === "move" ? [touch.from.path, touch.to.path] : [touch.path];
}

/** The arrays that the touch would have edited if its parents were arrays; the root never is one. */
export function possibleArrays(touch: Touch): readonly ReadPath[] {
  const spots = touch.kind === "move" ? [touch.from, touch.to] : [touch];
  return spots.filter((spot) => spot.indexed === true).map((spot) => operationPath(spot).slice(0, -1));
}

/** A last key that would be an index if its parent were an array. */
export function looksIndexed(path: ReadPath): boolean {
  return path.length > 1 && isIndex(path.at(-1) ?? "");
}

function operationPath(spot: Spot): ReadPath {
  return spot.made === undefined ? spot.path : [...spot.path, ...spot.made];
}

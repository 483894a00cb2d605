// What was touched of one document, as a tree of paths: values, lists of keys, and things that were only seen to be
// there. Turned into the reads that a commit names. Erring means naming more.
import { type ReadPath, spaceLimits } from "@claudemesh/protocol/spaces/entity";
import type { PathRead } from "@claudemesh/protocol/spaces/footprint";

export class ReadNode {
  readonly #children = new Map<string, ReadNode>();
  /** The value was taken. */
  isDeep = false;
  /** The keys, or the length, were looked at. */
  isShallow = false;
  /** It was seen to be there, or not to be: what is read below it says so too, as every write of it touches that. */
  isSeen = false;
  isAbsent = false;
  /** The one view of it, so that it is the same each time it is asked for. */
  view: object | undefined;

  child(key: string): ReadNode {
    let child = this.#children.get(key);
    if (child === undefined) {
      child = new ReadNode();
      this.#children.set(key, child);
    }
    return child;
  }

  reads(path: ReadPath = []): PathRead[] {
    // A path that no commit can name: the value above it is read instead, which says more.
    if (this.isDeep || this.#hasUnnameableChild(path)) return [{ path }];
    const reads: PathRead[] = this.isShallow ? [{ path, shallow: true }] : [];
    for (const [key, child] of this.#children) {
      // That a key is missing is part of what the keys are.
      if (this.isShallow && child.isAbsent) continue;
      reads.push(...child.reads([...path, key]));
    }
    return reads.length === 0 && this.isSeen ? [{ path, shallow: true }] : reads;
  }

  #hasUnnameableChild(path: ReadPath): boolean {
    if (this.#children.size === 0) return false;
    if (path.length >= spaceLimits.pathSegments) return true;
    for (const key of this.#children.keys()) if (key.length > spaceLimits.pathCharacters) return true;
    return false;
  }
}

// Records what was touched of one document, as a tree of paths: values, lists of keys, and paths of which only the
// existence was seen. It is turned into the reads that a commit names. When in doubt it names more.
import { type ReadPath, spaceLimits } from "@claudemesh/protocol/spaces/entity";
import type { PathRead } from "@claudemesh/protocol/spaces/footprint";

export class ReadNode {
  readonly #children = new Map<string, ReadNode>();
  /** The value was read. */
  isDeep = false;
  /** The keys, or the length, were read. */
  isShallow = false;
  /** The existence of a value was seen. A read below it implies this too, because every write of that touches it. */
  isSeen = false;
  isAbsent = false;
  /** The one view of the value, so that each access returns the same object. */
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
    // A commit cannot name this path, so the value above it is read instead, which covers more.
    if (this.isDeep || this.#hasUnnameableChild(path)) return [{ path }];
    const reads: PathRead[] = this.isShallow ? [{ path, shallow: true }] : [];
    for (const [key, child] of this.#children) {
      // The list of keys already says that a key is missing.
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

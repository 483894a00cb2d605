// The touches of many writes, indexed by path, so that comparing a read with all of them takes time proportional to its
// path. The result is the same as that of touchOverlaps for each pair, and a test compares the two.
// Why: docs/decisions/0117.
import type { ReadPath } from "./entity.ts";
import type { Footprint, PathRead, Spot } from "./touch.ts";
import { type Work, workCosts } from "./work.ts";

/** The seqs of the newest write of each kind; 0 where there is none. */
type Node = {
  readonly children: Map<string, Node>;
  /** At this path. */
  at: number;
  /** At this path or below it. */
  below: number;
  /** At one of the next keys, where the key did not exist before or does not exist after. */
  changedKeys: number;
};

export class TouchIndex {
  readonly #root = newNode();
  readonly #work: Work;

  constructor(work: Work) {
    this.#work = work;
  }

  add(seq: number, footprint: Footprint): void {
    for (const touch of footprint) {
      if (touch.kind === "move") {
        this.#addSpot(seq, touch.from);
        this.#addSpot(seq, touch.to);
      } else {
        this.#addSpot(seq, touch);
      }
    }
  }

  /** The seq of the newest write that overlaps the read; 0 where none does. */
  newestOverlap({ path, shallow }: PathRead): number {
    this.#work.spend((path.length + 1) * workCosts.keyIndexed);
    let node = this.#root;
    let newest = node.at;
    for (const key of path) {
      const child = node.children.get(key);
      if (child === undefined) return newest;
      node = child;
      newest = Math.max(newest, node.at);
    }
    return Math.max(newest, shallow === true ? node.changedKeys : node.below);
  }

  #addSpot(seq: number, { path, keeps }: Spot): void {
    this.#work.spend((path.length + 1) * workCosts.keyIndexed);
    const parents = this.#walk(seq, path.slice(0, -1));
    const last = path.at(-1);
    const node = last === undefined ? this.#root : childOf(parents, last);
    node.at = Math.max(node.at, seq);
    node.below = Math.max(node.below, seq);
    if (last !== undefined && keeps !== true) parents.changedKeys = Math.max(parents.changedKeys, seq);
  }

  /** Walks down to the node at the path, and records in each node on the way that something below it was written. */
  #walk(seq: number, path: ReadPath): Node {
    let node = this.#root;
    node.below = Math.max(node.below, seq);
    for (const key of path) {
      node = childOf(node, key);
      node.below = Math.max(node.below, seq);
    }
    return node;
  }
}

function newNode(): Node {
  return { children: new Map(), at: 0, below: 0, changedKeys: 0 };
}

function childOf(node: Node, key: string): Node {
  const existing = node.children.get(key);
  if (existing !== undefined) return existing;
  const child = newNode();
  node.children.set(key, child);
  return child;
}

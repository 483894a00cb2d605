// What a replica reports of its reads: the fewest reads that cover everything that was touched, and the layers of its
// own unconfirmed commits on which each of them depends.

import { footprintOverlaps } from "./footprint.ts";
import { spreadOverMoves } from "./pending-reads.ts";
import type { Footprint, PathRead } from "./touch.ts";

type Node = { readonly children: Map<string, Node>; deep: boolean; shallow: boolean };

/** A deep read covers every read at its path and below; a shallow read covers only itself. The order is by path. */
export function collapseReads(reads: readonly PathRead[]): PathRead[] {
  const root = newNode();
  for (const { path, shallow } of reads) {
    let node = root;
    for (const key of path) {
      if (node.deep) break;
      let child = node.children.get(key);
      if (child === undefined) {
        child = newNode();
        node.children.set(key, child);
      }
      node = child;
    }
    if (node.deep) continue;
    if (shallow === true) {
      node.shallow = true;
    } else {
      node.deep = true;
      node.children.clear();
    }
  }
  const collapsed: PathRead[] = [];
  collect(root, [], collapsed);
  return collapsed;
}

function newNode(): Node {
  return { children: new Map(), deep: false, shallow: false };
}

function collect(node: Node, path: readonly string[], into: PathRead[]): void {
  if (node.deep) into.push({ path });
  else if (node.shallow) into.push({ path, shallow: true });
  for (const [key, child] of node.children) collect(child, [...path, key], into);
}

/** An own commit that is not confirmed yet, with the footprints of its operations on the entity that was read. */
export type StackLayer = { readonly localSeq: number; readonly footprints: readonly Footprint[] };

/**
 * The layers on which a read of the stack's result depends, including content that they moved there. Each becomes one
 * pending read with the basis of the stack. An empty list means that the read is one of confirmed state.
 */
export function layersRead(read: PathRead, stack: readonly StackLayer[]): number[] {
  const reads = spreadOverMoves(
    read,
    stack.flatMap(({ footprints }) => footprints.flat()),
  );
  return stack
    .filter(({ footprints }) => footprints.some((one) => reads.some((each) => footprintOverlaps(one, each))))
    .map(({ localSeq }) => localSeq);
}

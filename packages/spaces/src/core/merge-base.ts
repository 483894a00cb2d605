// The state from which two branches have gone different ways: what the last merge between them brought over, else the
// point where they parted. Pure.
// Why: docs/decisions/0026.

import type { MergeRow } from "../ports/rows.ts";
import { type Branch, forkPointOf } from "./branch-lineage.ts";

export type BasePoint = { readonly branch: string; readonly seq: number };

/** Both branches hold what a merge took: the source because it wrote it, the target because it merged it. */
export function mergeBaseOf(a: Branch, b: Branch, newestFirst: readonly MergeRow[]): BasePoint {
  const [last] = newestFirst;
  return last === undefined ? forkPointOf(a, b) : { branch: last.sourceBranch, seq: last.sourceSeq };
}

/** The bases that a proposal made after `sinceSeq` can have been given, the present one first. */
export function basesSince(a: Branch, b: Branch, newestFirst: readonly MergeRow[], sinceSeq: number): BasePoint[] {
  const bases: BasePoint[] = [];
  for (let index = 0; index <= newestFirst.length; index += 1) {
    bases.push(mergeBaseOf(a, b, newestFirst.slice(index)));
    const merge = newestFirst[index];
    if (merge === undefined || merge.seq <= sinceSeq) break;
  }
  return bases;
}

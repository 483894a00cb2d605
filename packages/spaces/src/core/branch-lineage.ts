// Where a branch's content comes from: its own writes, then those of each ancestor up to the point where it was forked.
// Pure; a lineage is fixed when the branch is made, so that making one costs the same whatever it holds.

/** Writes of `branch` with a seq up to `upTo` show through. */
export type Segment = { readonly branch: string; readonly upTo: number };

export type Branch = {
  readonly name: string;
  /** Ancestors, nearest first. */
  readonly lineage: readonly Segment[];
  readonly createdSeq: number;
  readonly deletedSeq: number | undefined;
};

export const branchDepthMax = 8;

/** The branch as it stood after `atSeq`, nearest segment first. */
export function segmentsOf(branch: Pick<Branch, "name" | "lineage">, atSeq: number): Segment[] {
  return clip([{ branch: branch.name, upTo: atSeq }, ...branch.lineage], atSeq);
}

/** The ancestors of a branch that is forked from `parent` after `atSeq`. */
export function lineageOfFork(parent: Pick<Branch, "name" | "lineage">, atSeq: number): Segment[] | "too_deep" {
  const lineage = segmentsOf(parent, atSeq);
  return lineage.length > branchDepthMax ? "too_deep" : lineage;
}

/** The point that both branches have in their past: the nearest one that they share. Every branch comes from main. */
export function forkPointOf(a: Branch, b: Branch): { readonly branch: string; readonly seq: number } {
  const ofB = new Map(segmentsOf(b, Number.MAX_SAFE_INTEGER).map(({ branch, upTo }) => [branch, upTo]));
  for (const { branch, upTo } of segmentsOf(a, Number.MAX_SAFE_INTEGER)) {
    const other = ofB.get(branch);
    if (other !== undefined) return { branch, seq: Math.min(upTo, other) };
  }
  throw new Error(`the branches "${a.name}" and "${b.name}" share no ancestor`);
}

function clip(segments: readonly Segment[], atSeq: number): Segment[] {
  return segments.map(({ branch, upTo }) => ({ branch, upTo: Math.min(upTo, atSeq) }));
}

// SPC-8 in small: what shows through a branch, from which point, and how deep a lineage may be.
import { expect, test } from "vitest";
import { type Branch, branchDepthMax, forkPointOf, lineageOfFork, segmentsOf } from "./branch-lineage.ts";

const main: Branch = { name: "", lineage: [], createdSeq: 0, deletedSeq: undefined };

function fork(name: string, parent: Branch, atSeq: number): Branch {
  const lineage = lineageOfFork(parent, atSeq);
  if (lineage === "too_deep") throw new Error("too deep");
  return { name, lineage, createdSeq: atSeq + 1, deletedSeq: undefined };
}

test("a branch shows its own writes, and each ancestor's up to the fork", () => {
  const draft = fork("draft", main, 5);
  const child = fork("child", draft, 9);
  expect(segmentsOf(child, 20)).toEqual([
    { branch: "child", upTo: 20 },
    { branch: "draft", upTo: 9 },
    { branch: "", upTo: 5 },
  ]);
  expect(segmentsOf(child, 3).map(({ upTo }) => upTo)).toEqual([3, 3, 3]);
});

test("a fork from before its parent's own fork shows the older ancestor only so far", () => {
  const child = fork("child", fork("draft", main, 5), 2);
  expect(segmentsOf(child, 20)).toContainEqual({ branch: "", upTo: 2 });
});

test("a lineage is at most eight forks deep", () => {
  let branch = main;
  for (let depth = 1; depth <= branchDepthMax; depth++) branch = fork(`d${depth}`, branch, depth);
  expect(lineageOfFork(branch, 9)).toBe("too_deep");
});

test("two branches part at the nearest point that both have in their past", () => {
  const left = fork("left", main, 5);
  const right = fork("right", main, 8);
  const child = fork("child", left, 10);
  expect(forkPointOf(left, right)).toEqual({ branch: "", seq: 5 });
  expect(forkPointOf(right, left)).toEqual({ branch: "", seq: 5 });
  expect(forkPointOf(child, left)).toEqual({ branch: "left", seq: 10 });
  expect(forkPointOf(main, child)).toEqual({ branch: "", seq: 5 });
});

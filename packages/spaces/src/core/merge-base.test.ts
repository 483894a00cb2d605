// SPC-10 in small: which state two branches have gone different ways from, now and at the time of a proposal.
import { expect, test } from "vitest";
import type { Branch } from "./branch-lineage.ts";
import { basesSince, mergeBaseOf } from "./merge-base.ts";

const main: Branch = { name: "", lineage: [], createdSeq: 0, deletedSeq: undefined };
const draft: Branch = { name: "draft", lineage: [{ branch: "", upTo: 3 }], createdSeq: 4, deletedSeq: undefined };
const merges = [
  { seq: 20, sourceBranch: "", sourceSeq: 18 },
  { seq: 10, sourceBranch: "draft", sourceSeq: 9 },
];

test("without a merge the base is the fork", () => {
  expect(mergeBaseOf(draft, main, [])).toEqual({ branch: "", seq: 3 });
});

test("the base is what the last merge took, whichever way it went", () => {
  expect(mergeBaseOf(draft, main, merges)).toEqual({ branch: "", seq: 18 });
  expect(mergeBaseOf(main, draft, merges.slice(1))).toEqual({ branch: "draft", seq: 9 });
});

test("a proposal made before a merge was given the base of that time", () => {
  expect(basesSince(draft, main, merges, 15)).toEqual([
    { branch: "", seq: 18 },
    { branch: "draft", seq: 9 },
  ]);
  expect(basesSince(draft, main, merges, 20)).toEqual([{ branch: "", seq: 18 }]);
  expect(basesSince(draft, main, merges, 5)).toHaveLength(3);
});

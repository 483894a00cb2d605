// Merging entity by entity: what is taken, what is left, what is a conflict; and what a branch changed.
import { describe, expect, it } from "vitest";
import { diffEntities, encodeMergePlan, findIdleResolutions, type MergeEntity, planMerge } from "./merge.ts";

const merge = { sourceBranch: "draft", sourceSeq: 9, baseBranch: "", baseSeq: 2 };
const view = { target: "", seq: 9, merge };
const plan = (entities: MergeEntity[], resolutions: [string, { value: unknown } | null][] = []) =>
  planMerge(entities, new Map(resolutions) as Parameters<typeof planMerge>[1], view);

const [old, ours, theirs] = [{ value: 1 }, { value: 2 }, { value: 3 }];
const changedInSource = { id: "t:b", ancestor: old, source: ours, target: old };
const deletedInSource = { id: "t:a", ancestor: old, source: undefined, target: old };
const changedInTarget = { id: "t:c", ancestor: old, source: old, target: theirs };
const changedAlike = { id: "t:d", ancestor: old, source: { value: 2 }, target: { value: 2 } };
const conflict = { id: "t:e", ancestor: old, source: ours, target: theirs };

describe("a merge", () => {
  it("takes what only the source changed, and reads both sides whole", () => {
    expect(plan([changedInSource, deletedInSource, changedInTarget, changedAlike])).toEqual({
      status: "ready",
      proposal: {
        branch: "",
        reads: {
          confirmed: [
            { id: "t:a", branch: "draft", path: [], seq: 9 },
            { id: "t:a", branch: "", path: [], seq: 9 },
            { id: "t:b", branch: "draft", path: [], seq: 9 },
            { id: "t:b", branch: "", path: [], seq: 9 },
          ],
          pending: [],
        },
        operations: [
          { op: "delete", id: "t:a" },
          { op: "set", id: "t:b", value: ours },
        ],
        merge,
      },
      merged: ["t:a", "t:b"],
    });
  });

  it("is up to date when the source has nothing that the target lacks", () => {
    expect(plan([])).toEqual({ status: "up_to_date" });
    expect(plan([changedInTarget, changedAlike])).toEqual({ status: "up_to_date" });
    expect(plan([{ id: "t:x", ancestor: old, source: undefined, target: undefined }])).toEqual({
      status: "up_to_date",
    });
  });

  it("is a conflict when both changed an entity differently, deletions and creations included", () => {
    const cases: MergeEntity[] = [
      conflict,
      { id: "t:f", ancestor: old, source: undefined, target: theirs },
      { id: "t:g", ancestor: old, source: ours, target: undefined },
      { id: "t:h", ancestor: undefined, source: ours, target: theirs },
    ];
    expect(plan([changedInSource, ...cases])).toEqual({
      status: "conflict",
      conflicts: [
        { id: "t:e", ancestor: old, source: ours, target: theirs },
        { id: "t:f", ancestor: old, source: null, target: theirs },
        { id: "t:g", ancestor: old, source: ours, target: null },
        { id: "t:h", ancestor: null, source: ours, target: theirs },
      ],
    });
  });

  it("is ready once every conflict has a resolution, which is written whatever it is", () => {
    const operationsFor = (resolution: { value: unknown } | null) => {
      const outcome = plan([conflict], [["t:e", resolution]]);
      return outcome.status === "ready" ? outcome.proposal.operations : outcome.status;
    };
    expect(operationsFor({ value: 4 })).toEqual([{ op: "set", id: "t:e", value: { value: 4 } }]);
    expect(operationsFor(theirs)).toEqual([{ op: "set", id: "t:e", value: theirs }]);
    expect(operationsFor(null)).toEqual([{ op: "delete", id: "t:e" }]);
    expect(plan([conflict, { ...conflict, id: "t:f" }], [["t:e", null]])).toMatchObject({ conflicts: [{ id: "t:f" }] });
  });

  it("tells of resolutions that resolve nothing", () => {
    const resolutions = new Map([
      ["t:e", null],
      ["t:b", null],
      ["t:z", null],
    ]);
    expect(findIdleResolutions([conflict, changedInSource], resolutions)).toEqual(["t:b", "t:z"]);
  });

  it("has a JSON form with its values encoded", () => {
    const big = { id: "t:a", ancestor: undefined, source: { value: 5n }, target: undefined };
    expect(encodeMergePlan(plan([big]))).toMatchObject({
      status: "ready",
      proposal: { operations: [{ op: "set", id: "t:a", value: { value: { "/": { "bigint@1": "5" } } } }], merge },
      merged: ["t:a"],
    });
    expect(encodeMergePlan(plan([{ ...big, target: { value: 6n } }]))).toEqual({
      status: "conflict",
      conflicts: [
        {
          id: "t:a",
          source: { value: { "/": { "bigint@1": "5" } } },
          target: { value: { "/": { "bigint@1": "6" } } },
          ancestor: null,
        },
      ],
    });
    expect(encodeMergePlan(plan([]))).toEqual({ status: "up_to_date" });
  });
});

describe("a diff", () => {
  it("lists by id what was added, removed and modified, and leaves out what is the same", () => {
    expect(
      diffEntities([
        { id: "t:m", ancestor: old, current: ours },
        { id: "t:b", ancestor: undefined, current: ours },
        { id: "t:a", ancestor: undefined, current: ours },
        { id: "t:r", ancestor: old, current: undefined },
        { id: "t:s", ancestor: old, current: { value: 1 } },
        { id: "t:n", ancestor: undefined, current: undefined },
      ]),
    ).toEqual({ added: ["t:a", "t:b"], removed: ["t:r"], modified: ["t:m"] });
  });
});

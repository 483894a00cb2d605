// The work of a commit: what may be asked with few bytes is counted and bounded, and what people do is far below the bound.
import { describe, expect, test } from "vitest";
import { entityId, randomDocument, randomPatch, seededPick } from "../testing/random-edits.ts";
import { applyWithFootprint, OperationDraft } from "./apply.ts";
import type { EntityDocument } from "./entity.ts";
import type { FabricValue } from "./fabric-value.ts";
import type { Operation, PatchOp } from "./operations.ts";
import { PatchFailure } from "./patch-failure.ts";
import { commitWorkMax, Work } from "./work.ts";

const patchOf = (patch: PatchOp): Operation => ({ op: "patch", id: entityId, patches: [patch] });
const manyOf = (patch: (n: number) => PatchOp, count = 5_000) =>
  Array.from({ length: count }, (_, n) => patchOf(patch(n)));

/** How many were applied before the work was too much. */
function applyWithin(document: EntityDocument, operations: readonly Operation[]): { applied: number; work: Work } {
  const work = new Work(commitWorkMax);
  const draft = new OperationDraft(document, { work });
  let applied = 0;
  try {
    for (const operation of operations) {
      draft.apply(operation);
      applied += 1;
    }
  } catch (error) {
    expect(error).toMatchObject({ code: "commit_too_expensive", status: 422, retryable: false });
    expect(error).toMatchObject({ details: { work: work.spent, limit: commitWorkMax } });
  }
  return { applied, work };
}

const zeros = { value: Array(520_000).fill(0) as FabricValue };
const wide = { value: Object.fromEntries(Array.from({ length: 90_000 }, (_, n) => [`k${n}`, 0])) };
const nested = (depth: number): FabricValue => (depth === 0 ? 0 : { a: nested(depth - 1) });
const tasks = {
  value: Array.from({ length: 12_000 }, (_, n) => ({ id: `task:${n}`, title: `write page ${n}`, owner: "alice", n })),
};

describe("the work of a commit", () => {
  test.each<[string, EntityDocument, readonly Operation[]]>([
    [
      "splices at the head of a long array",
      zeros,
      manyOf(() => ({ op: "splice", path: "/value", index: 0, remove: 0, add: [1] })),
    ],
    ["adds at the head of a long array", zeros, manyOf(() => ({ op: "add", path: "/value/0", value: 1 }))],
    ["removals at the head of a long array", zeros, manyOf(() => ({ op: "remove", path: "/value/0" }))],
    [
      "copies of a long array, one for each document that is set",
      zeros,
      manyOf((n) =>
        n % 2 === 0
          ? { op: "replace", path: "/value", value: zeros.value }
          : { op: "replace", path: "/value/0", value: n },
      ),
    ],
    [
      "very deep paths",
      { value: nested(120) },
      manyOf(() => ({ op: "replace", path: `/value${"/a".repeat(119)}`, value: 1 })),
    ],
    [
      "moves that each measure the whole document",
      { deep: nested(100), value: wide.value, a: [[]] },
      manyOf((n) => ({
        op: "move",
        from: n % 2 === 0 ? "/a" : `${"/b".repeat(40)}`,
        path: n % 2 === 0 ? `${"/b".repeat(40)}` : "/a",
      })),
    ],
  ])("is too much for %s", (_, document, operations) => {
    const { applied } = applyWithin(document, operations);
    expect(applied).toBeGreaterThan(0);
    expect(applied).toBeLessThan(operations.length);
  });

  test("of a test counts the keys that it lists, which may be many where its own value is small", () => {
    const work = new Work();
    const draft = new OperationDraft(wide, { work });
    expect(() => draft.apply(patchOf({ op: "test", path: "/value", value: { k: {} } }))).toThrow(PatchFailure);
    expect(work.spent).toBeGreaterThan(90_000);
  });

  test.each<[string, EntityDocument, readonly Operation[]]>([
    [
      "5,000 patches of one large document",
      tasks,
      manyOf((n) => ({ op: "replace", path: `/value/${n * 2}/owner`, value: "bob" })),
    ],
    ["5,000 items at the end of a list", { value: [] }, manyOf((n) => ({ op: "add", path: "/value/-", value: n }))],
    [
      "20 splices into an array of a megabyte",
      zeros,
      manyOf(() => ({ op: "splice", path: "/value", index: 9, remove: 1, add: [1, 2] }), 20),
    ],
    [
      "an array of 100,000 items, spliced in",
      { value: [1] },
      manyOf(() => ({ op: "splice", path: "/value", index: 1, remove: 0, add: Array(100_000).fill(1) }), 1),
    ],
    [
      "a patch of an object with 40,000 keys",
      { value: Object.fromEntries(Array.from({ length: 40_000 }, (_, n) => [`k${n}`, n])) },
      manyOf(() => ({ op: "replace", path: "/value/k7", value: "x" }), 1),
    ],
  ])("has room for %s", (_, document, operations) => {
    const { applied, work } = applyWithin(document, operations);
    expect(applied).toBe(operations.length);
    expect(work.spent).toBeLessThan(commitWorkMax * 0.75);
  });

  test("operations on one draft leave what they leave one by one, and change nothing that they were given", () => {
    let compared = 0;
    for (let seed = 1; seed <= 400; seed += 1) {
      const pick = seededPick(seed);
      const document = randomDocument(pick);
      const given = structuredClone(document);
      for (const ownsAll of [false, true]) {
        const draft = new OperationDraft(ownsAll ? structuredClone(document) : document, { ownsAll });
        let alone = document;
        for (let step = 0; step < 12; step += 1) {
          const operation = patchOf(randomPatch(pick, alone));
          const asGiven = structuredClone(operation);
          let applied: ReturnType<typeof applyWithFootprint>;
          try {
            applied = applyWithFootprint(alone, operation);
          } catch (error) {
            if (!(error instanceof PatchFailure)) throw error;
            continue;
          }
          expect(draft.apply(ownsAll ? structuredClone(operation) : operation)).toEqual(applied.footprint);
          expect(draft.document).toEqual(applied.document);
          expect(operation).toEqual(asGiven);
          alone = applied.document;
          compared += 1;
        }
      }
      expect(document).toEqual(given);
    }
    expect(compared).toBeGreaterThan(2_000);
  });
});

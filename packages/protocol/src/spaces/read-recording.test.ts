// The fewest reads for all that was touched, and the layers that a read rests on.
import { describe, expect, it } from "vitest";
import { randomDocument, randomFittingOperation, randomRead, seededPick } from "../testing/random-edits.ts";
import { footprintOf, footprintOverlaps } from "./footprint.ts";
import type { PatchOp } from "./operations.ts";
import { collapseReads, layersRead } from "./read-recording.ts";

describe("the reads that stand for all that was touched", () => {
  it("leave out what a deep read above or the same read says already", () => {
    expect(
      collapseReads([
        { path: ["a", "b", "c"] },
        { path: ["a"], shallow: true },
        { path: ["a", "b"] },
        { path: ["a", "b"], shallow: true },
        { path: ["a", "b", "d"], shallow: true },
        { path: ["x"], shallow: true },
        { path: ["x"] },
        { path: ["x", "y"] },
      ]),
    ).toEqual([{ path: ["a"], shallow: true }, { path: ["a", "b"] }, { path: ["x"] }]);
    expect(collapseReads([{ path: ["a"] }, { path: [] }])).toEqual([{ path: [] }]);
    expect(collapseReads([])).toEqual([]);
  });

  it("overlap a write exactly when one of those touched does", () => {
    let met = 0;
    for (let seed = 0; seed < 2_000; seed += 1) {
      const pick = seededPick(seed);
      const document = randomDocument(pick);
      const reads = Array.from({ length: 5 }, () => randomRead(pick, document));
      const edit = randomFittingOperation(pick, document);
      if (edit === undefined) continue;
      const isHit = reads.some((read) => footprintOverlaps(edit.footprint, read));
      const collapsed = collapseReads(reads);
      expect(
        collapsed.some((read) => footprintOverlaps(edit.footprint, read)),
        `seed ${seed}`,
      ).toBe(isHit);
      if (collapsed.length < reads.length && !isHit) met += 1;
    }
    expect(met).toBeGreaterThan(50);
  });
});

describe("the layers that a read rests on", () => {
  const layer = (localSeq: number, before: Parameters<typeof footprintOf>[1], ...patches: PatchOp[]) => ({
    localSeq,
    footprints: [footprintOf({ op: "patch", id: "task:1", patches }, before)],
  });
  const stack = [
    layer(1, { a: 1 }, { op: "replace", path: "/a", value: 2 }),
    layer(2, { a: 2 }, { op: "move", from: "/a", path: "/b" }),
    layer(3, { b: 2 }, { op: "add", path: "/c", value: 3 }),
  ];

  it("are those that wrote there, and those that wrote what was moved there", () => {
    expect(layersRead({ path: ["b"] }, stack)).toEqual([1, 2]);
    expect(layersRead({ path: ["c"] }, stack)).toEqual([3]);
    expect(layersRead({ path: [], shallow: true }, stack)).toEqual([1, 2, 3]);
  });

  it("are none when it is one of confirmed state", () => {
    expect(layersRead({ path: ["d"] }, stack)).toEqual([]);
  });
});

// SPC-3: whenever the rule for pending reads accepts, the read saw what a serial run would have shown. Here are the
// parts of the rule one by one, and a slice of the naive world that the deep run walks at length.
import { describe, expect, it } from "vitest";
import { tallyPendingWorlds } from "../testing/pending-world.ts";
import { applyWithFootprint } from "./apply.ts";
import type { EntityDocument } from "./entity.ts";
import type { PatchOp } from "./operations.ts";
import { decidePendingRead, groupPendingReads, type NamedLayer } from "./pending-reads.ts";

/** Layers of one patch operation each, with the seqs 11, 12, … in the order given. */
function layersOn(document: EntityDocument, ...stack: PatchOp[][]): NamedLayer[] {
  let current: EntityDocument | undefined = document;
  return stack.map((patches, index) => {
    const applied = applyWithFootprint(current, { op: "patch", id: "task:1", patches });
    current = applied.document;
    return { seq: 11 + index, footprints: [applied.footprint] };
  });
}

const basisRequired = { kind: "basis_required" };
const scanOf = (paths: string[][], fromSeq: number, ignoreSeqs: number[]) => ({
  kind: "scan",
  scan: paths.map((path) => ({ path })),
  fromSeq,
  ignoreSeqs,
});

describe("a pending read with a basis", () => {
  it("is scanned from its basis, leaving out only the layers that it names", () => {
    const layers = layersOn({ value: 1 }, [{ op: "replace", path: "/value", value: 2 }]);
    expect(decidePendingRead({ path: ["value"], basisSeq: 10 }, layers)).toEqual(scanOf([["value"]], 10, [11]));
    expect(decidePendingRead({ path: ["other"], shallow: true, basisSeq: 3 }, layers)).toEqual({
      kind: "scan",
      scan: [{ path: ["other"], shallow: true }],
      fromSeq: 3,
      ignoreSeqs: [11],
    });
  });

  it("counts as one of the whole array that a named layer edits", () => {
    const layers = layersOn({ list: [1, 2] }, [{ op: "remove", path: "/list/0" }]);
    const scan = scanOf([["list", "0"], ["list"]], 10, [11]);
    expect(decidePendingRead({ path: ["list", "0"], basisSeq: 10 }, layers)).toEqual(scan);
  });

  it("counts as one of a move's source and target", () => {
    const layers = layersOn({ a: 1 }, [{ op: "move", from: "/a", path: "/b" }]);
    expect(decidePendingRead({ path: ["b"], basisSeq: 10 }, layers)).toEqual(scanOf([["b"], ["a"]], 10, [11]));
  });

  it("follows content through several layers: a to b, then b to c", () => {
    const layers = layersOn(
      { a: { x: 1 } },
      [{ op: "move", from: "/a", path: "/b" }],
      [{ op: "move", from: "/b", path: "/c" }],
    );
    const decision = decidePendingRead({ path: ["c", "x"], basisSeq: 10 }, layers);
    expect(decision).toEqual(scanOf([["c", "x"], ["b"], ["c"], ["a"]], 10, [11, 12]));
  });

  it("counts as one of the whole document when very many moves would have to be followed", () => {
    const chain = Array.from(
      { length: 65 },
      (_, at): PatchOp => ({ op: "move", from: `/a${at}`, path: `/a${at + 1}` }),
    );
    const layers = layersOn({ a0: 1, z: 1 }, chain);
    expect(decidePendingRead({ path: ["a65"], basisSeq: 10 }, layers)).toEqual(scanOf([[]], 10, [11]));
    expect(decidePendingRead({ path: ["z"], basisSeq: 10 }, layers)).toEqual(scanOf([["z"]], 10, [11]));
    const shorter = decidePendingRead({ path: ["a64"], basisSeq: 10 }, layersOn({ a0: 1 }, chain.slice(0, 64)));
    expect(shorter).toMatchObject({ scan: { length: 65 } });
  });

  it("is not widened by what moves elsewhere", () => {
    const layers = layersOn({ a: 1, list: [1] }, [{ op: "move", from: "/a", path: "/list/-" }]);
    expect(decidePendingRead({ path: ["b"], basisSeq: 10 }, layers)).toEqual(scanOf([["b"]], 10, [11]));
  });
});

describe("a pending read without a basis", () => {
  it("needs a layer that covers it", () => {
    const read = { path: ["a", "x"] };
    const covering: PatchOp[][] = [
      [{ op: "replace", path: "/a/x", value: 1 }],
      [{ op: "replace", path: "/a", value: { x: 1 } }],
      [{ op: "add", path: "/a/x", value: 1 }],
      [{ op: "add", path: "", value: { a: 1 } }],
      [{ op: "remove", path: "/a/x" }],
      [{ op: "remove", path: "/a" }],
    ];
    for (const patches of covering) {
      expect(decidePendingRead(read, layersOn({ a: { x: 0 } }, patches))).toEqual(scanOf([["a", "x"]], 11, []));
    }
    const others: PatchOp[][] = [
      [{ op: "replace", path: "/a/y", value: 1 }],
      [{ op: "add", path: "/a/x/z", value: 1 }],
      [{ op: "move", from: "/b", path: "/a/x" }],
      [{ op: "move", from: "/a", path: "/b" }],
      [{ op: "test", path: "/a/y", value: 0 }],
    ];
    for (const patches of others) {
      expect(decidePendingRead(read, layersOn({ a: { x: {}, y: 0 }, b: 1 }, patches))).toEqual(basisRequired);
    }
    expect(decidePendingRead(read, [])).toEqual(basisRequired);
  });

  it("is covered by a set and by a delete, whatever is read", () => {
    for (const operation of [
      { op: "set", id: "task:1", value: {} },
      { op: "delete", id: "task:1" },
    ] as const) {
      const layer = { seq: 11, footprints: [applyWithFootprint({ a: 1 }, operation).footprint] };
      expect(decidePendingRead({ path: ["a"] }, [layer])).toEqual(scanOf([["a"]], 11, []));
    }
  });

  it("is scanned from the last layer that covers it, leaving out only later ones that it names", () => {
    const layers = layersOn(
      { a: 1 },
      [{ op: "replace", path: "/a", value: 2 }],
      [{ op: "replace", path: "/a", value: { x: 3 } }],
      [{ op: "add", path: "/a/y", value: 4 }],
    );
    expect(decidePendingRead({ path: ["a"] }, layers)).toEqual(scanOf([["a"]], 12, [13]));
  });

  it("needs a basis when a later patch, of the covering layer or another, moves content over it", () => {
    const cover: PatchOp = { op: "replace", path: "/list", value: [1, 2] };
    const move: PatchOp = { op: "splice", path: "/list", index: 0, remove: 1, add: [] };
    const read = { path: ["list", "0"] };
    expect(decidePendingRead(read, layersOn({ list: [] }, [cover, move]))).toEqual(basisRequired);
    expect(decidePendingRead(read, layersOn({ list: [] }, [cover], [move]))).toEqual(basisRequired);
    expect(decidePendingRead(read, layersOn({ list: [1] }, [move], [cover]))).toEqual(scanOf([["list", "0"]], 12, []));
  });

  // The server sees an object where the client, on an older state, may have seen an array.
  it("takes a key that looks like an index for one", () => {
    const before = { m: { "0": 1, "1": 2 }, x: 1 };
    const read = { path: ["m", "1"] };
    const cover: PatchOp = { op: "replace", path: "/m/1", value: 3 };
    const doubtful: PatchOp[] = [
      { op: "add", path: "/m/0", value: 4 },
      { op: "remove", path: "/m/0" },
      { op: "move", from: "/m/0", path: "/y" },
      { op: "move", from: "/x", path: "/m/0" },
    ];
    for (const patch of doubtful) {
      expect(decidePendingRead(read, layersOn(before, [cover], [patch]))).toEqual(basisRequired);
    }
    expect(decidePendingRead(read, layersOn(before, [{ op: "remove", path: "/m/1" }]))).toEqual(basisRequired);
    const appended = layersOn({ m: {} }, [{ op: "add", path: "/m/-", value: 1 }]);
    expect(decidePendingRead({ path: ["m", "-"] }, appended)).toEqual(basisRequired);
    const harmless = layersOn(before, [cover], [{ op: "replace", path: "/m/0", value: 4 }]);
    expect(decidePendingRead(read, harmless)).toEqual(scanOf([["m", "1"]], 11, [12]));
  });
});

describe("the entries of a commit's pending reads", () => {
  it("are one read per id and path that names all their layers, and the safe side wins where they disagree", () => {
    const groups = groupPendingReads([
      { id: "task:1", path: ["a"], localSeq: 3, shallow: true, basisSeq: 9 },
      { id: "task:1", path: ["a", "b"], localSeq: 3, shallow: true },
      { id: "task:1", path: ["a"], localSeq: 2, basisSeq: 7 },
      { id: "task:1", path: ["a"], localSeq: 3 },
      { id: "task:2", path: ["a"], localSeq: 3 },
    ]);
    expect(groups).toEqual([
      { id: "task:1", path: ["a"], localSeqs: [2, 3], basisSeq: 7 },
      { id: "task:1", path: ["a", "b"], localSeqs: [3], shallow: true },
      { id: "task:2", path: ["a"], localSeqs: [3] },
    ]);
  });
});

describe("a pending read in a world with foreign writes", () => {
  it.each([
    { withBasis: true, nameAll: true },
    { withBasis: true, nameAll: false },
    { withBasis: false, nameAll: true },
    { withBasis: false, nameAll: false },
  ])("is sound whenever it is accepted: %j", (choice) => {
    const counts = tallyPendingWorlds(decidePendingRead, choice, { from: 0, to: 1_500 });
    expect(counts).toMatchObject({ anomaly: 0, anomalies: [] });
    expect(counts.sound).toBeGreaterThan(100);
    expect(counts.stale).toBeGreaterThan(100);
    expect(counts.basis_required > 0).toBe(!choice.withBasis);
  });
});

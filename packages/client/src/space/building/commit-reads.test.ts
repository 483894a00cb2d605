import { applyWithFootprint } from "@claudemesh/protocol/spaces/apply";
import type { PatchOp } from "@claudemesh/protocol/spaces/operations";
import { describe, expect, it } from "vitest";
import { EntityTiers } from "../tiers/entity-tiers.ts";
import type { Layer } from "../tiers/layer.ts";
import { commitReads, readsBelow } from "./commit-reads.ts";

const base = { value: { a: 1, list: [1, 2, 3], b: { x: 1 } } };
const touchesOf = (...patches: PatchOp[]) => applyWithFootprint(base, { op: "patch", id: "e:1", patches }).footprint;

describe("a read after own writes of the same transaction", () => {
  it.each<[string, PatchOp[], string[], string[][]]>([
    [
      "is none where the transaction wrote the value itself",
      [{ op: "replace", path: "/value/a", value: 2 }],
      ["value", "a"],
      [],
    ],
    [
      "is one of what is beside the write",
      [{ op: "replace", path: "/value/a", value: 2 }],
      ["value", "b"],
      [["value", "b"]],
    ],
    [
      "is one of the whole array once items moved",
      [{ op: "add", path: "/value/list/0", value: 0 }],
      ["value", "list", "2"],
      [
        ["value", "list", "2"],
        ["value", "list"],
      ],
    ],
    [
      "is one of where the content came from",
      [{ op: "move", from: "/value/b", path: "/value/c" }],
      ["value", "c", "x"],
      [
        ["value", "c", "x"],
        ["value", "b"],
        ["value", "c"],
      ],
    ],
  ])("%s", (_, patches, path, expected) => {
    expect(readsBelow({ path }, touchesOf(...patches)).map((read) => read.path)).toEqual(expected);
  });

  it("is none once the transaction has set the whole document", () => {
    const { footprint } = applyWithFootprint(base, { op: "set", id: "e:1", value: base });
    expect(
      readsBelow({ path: ["value", "list", "1"] }, [
        ...footprint,
        ...touchesOf({ op: "remove", path: "/value/list/0" }),
      ]),
    ).toEqual([]);
  });
});

describe("a commit's reads", () => {
  const layerOf = (localSeq: number): Layer => ({
    localSeq,
    branch: "",
    operations: [],
    restsOn: new Set(),
    hasSends: false,
    request: { type: "space.commit", input: {} },
  });

  it("name all layers that a value rests on, with the seq under them, and confirmed state for the rest", () => {
    const entity = new EntityTiers("e:1");
    entity.goLive();
    entity.confirm(4, base);
    entity.push(layerOf(7), [{ op: "patch", id: "e:1", patches: [{ op: "replace", path: "/value/a", value: 2 }] }], 9);
    entity.push(layerOf(8), [{ op: "patch", id: "e:1", patches: [{ op: "add", path: "/value/list/-", value: 4 }] }], 9);
    const read = (...path: string[]) => ({ read: { path }, ownTouches: [] });
    const reads = commitReads(9, [
      { entity, reads: [read("value", "a"), read("value", "list", "0"), read("value", "b", "x")] },
    ]);
    expect(reads).toEqual({
      confirmed: [{ id: "e:1", path: ["value", "b", "x"], seq: 9 }],
      pending: [
        { id: "e:1", path: ["value", "a"], localSeq: 7, basisSeq: 9 },
        { id: "e:1", path: ["value", "list", "0"], localSeq: 8, basisSeq: 9 },
      ],
    });
  });

  it("are one of the whole entity where there are very many", () => {
    const entity = new EntityTiers("e:1");
    entity.goLive();
    const reads = Array.from({ length: 501 }, (_, n) => ({ read: { path: ["value", `${n}`] }, ownTouches: [] }));
    expect(commitReads(3, [{ entity, reads }])).toEqual({ confirmed: [{ id: "e:1", path: [], seq: 3 }], pending: [] });
  });

  it("of what was only ever written here are as of the time before that", () => {
    const entity = new EntityTiers("e:1");
    entity.push(layerOf(1), [{ op: "set", id: "e:1", value: base }], 5);
    expect(entity.isReadable).toBe(true);
    const reads = commitReads(12, [{ entity, reads: [{ read: { path: ["value", "a"] }, ownTouches: [] }] }]);
    expect(reads.pending).toEqual([{ id: "e:1", path: ["value", "a"], localSeq: 1, basisSeq: 5 }]);
  });
});

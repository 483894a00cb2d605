// What operations do: by the vectors (RFC 6902's own examples among them), and as properties: nothing is changed in
// place, nothing reaches a prototype, and what was not written is shared.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type JsonValue, parseOwnJsonText } from "../json/strict-json.ts";
import { applyIfFits, randomDocument, randomPatch, seededPick } from "../testing/random-edits.ts";
import { applyOperation } from "./apply.ts";
import { type EntityDocument, writeDocument } from "./entity.ts";
import { decodeFabric, type FabricValue, fabricDepth, fabricEqual } from "./fabric-value.ts";
import { type EncodedPatch, readOperation } from "./operation-wire.ts";
import type { PatchOp } from "./operations.ts";
import { PatchFailure } from "./patch-failure.ts";

interface Case {
  name: string;
  document: JsonValue;
  patches: EncodedPatch[];
  after?: JsonValue;
  reason?: string;
  patchIndex?: number;
}

// Not by JSON.parse: a key of the vectors is __proto__.
const page = readFileSync(new URL("../../vectors/spaces-patches.json", import.meta.url), "utf8");
const { cases } = parseOwnJsonText(page) as unknown as { cases: Case[] };

const decodeDocument = (json: JsonValue) => (json === null ? undefined : (decodeFabric(json) as EntityDocument));
const patch = (...patches: PatchOp[]) => ({ op: "patch", id: "task:1", patches }) as const;

function failureOf(run: () => unknown): PatchFailure {
  try {
    run();
  } catch (error) {
    if (error instanceof PatchFailure) return error;
    throw error;
  }
  throw new Error("the patch fits");
}

describe("the patch vectors", () => {
  it("are there, those that fit and those that do not", () => {
    expect(cases.filter(({ after }) => after !== undefined).length).toBeGreaterThan(35);
    expect(cases.filter(({ reason }) => reason !== undefined).length).toBeGreaterThan(35);
  });

  it.each(cases)("$name", ({ document, patches, after, reason, patchIndex }) => {
    const operation = readOperation({ op: "patch", id: "task:1", patches }, "operations.0");
    const before = decodeDocument(document);
    if (after === undefined) {
      const failed = patches[patchIndex ?? 0];
      expect(failureOf(() => applyOperation(before, operation, 4)).toBody()).toMatchObject({
        error: "patch_error",
        name: "PatchError",
        operationIndex: 4,
        patchIndex,
        op: failed?.op,
        path: failed?.path,
        reason,
      });
    } else {
      const document = applyOperation(before, operation);
      expect(fabricEqual(document, decodeDocument(after))).toBe(true);
    }
  });
});

describe("an operation", () => {
  it("that sets or deletes does so whatever was there", () => {
    const value = { value: 1 };
    for (const before of [undefined, {}, { a: 1 }]) {
      expect(applyOperation(before, { op: "set", id: "task:1", value })).toBe(value);
      expect(applyOperation(before, { op: "delete", id: "task:1" })).toBeUndefined();
    }
  });

  it("never changes the document or its own values in place", () => {
    let applied = 0;
    for (let seed = 0; seed < 3_000; seed += 1) {
      const pick = seededPick(seed);
      const before = randomDocument(pick);
      const operation = patch(randomPatch(pick, before), randomPatch(pick, before), randomPatch(pick, before));
      const copies = structuredClone({ before, operation });
      freeze(before);
      freeze(operation as unknown as FabricValue);
      // A change in place throws on what is frozen, and a plain comparison would show one.
      const outcome = applyIfFits(before, operation);
      expect({ before, operation }, `seed ${seed}`).toEqual(copies);
      if (outcome !== undefined) applied += 1;
    }
    expect(applied).toBeGreaterThan(200);
  });

  it("gives documents that can be written and read", () => {
    for (let seed = 0; seed < 1_000; seed += 1) {
      const pick = seededPick(seed);
      const before = randomDocument(pick);
      const outcome = applyIfFits(before, patch(randomPatch(pick, before), randomPatch(pick, before)));
      if (outcome?.document === undefined) continue;
      const text = writeDocument(outcome.document);
      expect(fabricEqual(decodeFabric(parseOwnJsonText(text)), outcome.document), `seed ${seed}`).toBe(true);
    }
  });

  it("shares what it did not write with the document before", () => {
    const before = { value: { large: { a: [1] }, small: { b: 1 }, list: [{ c: 1 }, { d: 1 }] } };
    const after = applyOperation(
      before,
      patch({ op: "replace", path: "/value/small/b", value: 2 }, { op: "add", path: "/value/list/0/e", value: 3 }),
    ) as typeof before;
    expect(after).toEqual({ value: { large: { a: [1] }, small: { b: 2 }, list: [{ c: 1, e: 3 }, { d: 1 }] } });
    expect(after.value.large).toBe(before.value.large);
    expect(after.value.list[1]).toBe(before.value.list[1]);
    expect(before.value.small.b).toBe(1);
  });

  it("reaches no prototype", () => {
    const patches: PatchOp[] = [
      { op: "add", path: "/__proto__/polluted", value: 1 },
      { op: "replace", path: "/__proto__/polluted", value: 2 },
      { op: "move", from: "/__proto__", path: "/constructor" },
      { op: "add", path: "/a/__proto__", value: { polluted: 3 } },
      { op: "move", from: "/constructor", path: "/__proto__" },
    ];
    const after = applyOperation({}, patch(...patches));
    expect(JSON.stringify(after)).toBe('{"a":{"__proto__":{"polluted":3}},"__proto__":{"polluted":2}}');
    expect(Object.getPrototypeOf(after)).toBe(Object.prototype);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  it("makes no document deeper than the limit", () => {
    const deep = `/${Array.from({ length: 128 }, () => "a").join("/")}`;
    expect(failureOf(() => applyOperation({}, patch({ op: "add", path: deep, value: {} }))).reason).toBe("too_deep");
    const filled = applyOperation(
      {},
      patch({ op: "add", path: deep, value: 1 }, { op: "add", path: "/b", value: [1] }),
    );
    const parent = deep.slice(0, -2);
    const tooDeep: PatchOp[] = [
      { op: "replace", path: deep, value: [] },
      { op: "move", from: "/b", path: deep },
    ];
    for (const one of tooDeep) expect(failureOf(() => applyOperation(filled, patch(one))).reason).toBe("too_deep");
    const listed = applyOperation(filled, patch({ op: "replace", path: parent, value: [] }));
    const splice: PatchOp = { op: "splice", path: parent, index: 0, remove: 0, add: [[]] };
    expect(failureOf(() => applyOperation(listed, patch(splice))).reason).toBe("too_deep");
    expect(applyOperation(listed, patch({ ...splice, add: [1] }))).toBeDefined();
  });

  it("knows how deep a document is after many moves up and down", () => {
    const chain = (length: number) => `/${Array.from({ length }, () => "a").join("/")}`;
    const wander = Array.from({ length: 300 }, (): PatchOp[] => [
      { op: "move", from: "/x", path: "/y/z" },
      { op: "move", from: "/y/z", path: "/x" },
    ]).flat();
    const before = { x: { b: 1 }, y: {} };
    expect(applyOperation(before, patch(...wander))).toEqual(before);
    const deep = patch(...wander, { op: "add", path: chain(126), value: {} });
    const filled = applyOperation(before, deep);
    expect(fabricDepth(filled)).toBe(127);
    const intoIt = (path: string) => patch(...wander, { op: "move", from: "/x", path });
    expect(fabricDepth(applyOperation(filled, intoIt(`${chain(126)}/a`)))).toBe(128);
    const tooDeep = applyOperation(filled, patch({ op: "add", path: "/x/b", value: [1] }));
    expect(failureOf(() => applyOperation(tooDeep, intoIt(`${chain(126)}/a`))).reason).toBe("too_deep");
  });

  it("splices more items than a call may have arguments", () => {
    const items = Array.from({ length: 200_000 }, (_, index) => index);
    const after = applyOperation({ a: [-1] }, patch({ op: "splice", path: "/a", index: 1, remove: 0, add: items }));
    expect(after?.a).toHaveLength(200_001);
  });

  it("that was built here and is no pointer fails as a patch does", () => {
    expect(failureOf(() => applyOperation({}, patch({ op: "remove", path: "a" }))).reason).toBe("not_a_pointer");
    expect(failureOf(() => applyOperation({}, patch({ op: "move", from: "a", path: "/a" }))).reason).toBe(
      "not_a_pointer",
    );
  });
});

function freeze(value: FabricValue): void {
  if (typeof value !== "object" || value === null) return;
  Object.freeze(value);
  for (const member of Object.values(value)) freeze(member);
}

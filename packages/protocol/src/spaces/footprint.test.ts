// SPC-2: a footprint overlaps every read whose sight the operation changed. By the vectors, and as a property of random
// documents, operations and reads; what covers a path makes what was there before of no account.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type JsonValue, parseOwnJsonText } from "../json/strict-json.ts";
import {
  applyIfFits,
  entityId,
  randomDocument,
  randomFittingOperation,
  randomPath,
  randomRead,
  seededPick,
} from "../testing/random-edits.ts";
import type { EntityDocument } from "./entity.ts";
import { decodeFabric, fabricEqual } from "./fabric-value.ts";
import { footprintOf, footprintOverlaps } from "./footprint.ts";
import { type EncodedPatch, readOperation } from "./operation-wire.ts";
import type { PatchOp } from "./operations.ts";
import { movesContent, type PathRead, touchCovers } from "./touch.ts";
import { shallowAt, type ValueAt, valueAt } from "./value-at.ts";

interface Overlap extends PathRead {
  document: JsonValue;
  patch: EncodedPatch;
  path: string[];
  overlaps: boolean;
}

const page = readFileSync(new URL("../../vectors/spaces-patches.json", import.meta.url), "utf8");
const { overlaps } = parseOwnJsonText(page) as unknown as { overlaps: Overlap[] };
const touches = (before: EntityDocument | undefined, ...patches: PatchOp[]) =>
  footprintOf({ op: "patch", id: entityId, patches }, before);

function look(document: EntityDocument | undefined, read: PathRead): ValueAt {
  return read.shallow === true ? shallowAt(document, read.path) : valueAt(document, read.path);
}

function sameSight(a: ValueAt, b: ValueAt): boolean {
  return a.exists && b.exists ? fabricEqual(a.value, b.value) : a.exists === b.exists;
}

describe("the overlap vectors", () => {
  it("are there, those that overlap and those that do not", () => {
    expect(overlaps.filter((one) => one.overlaps).length).toBeGreaterThan(20);
    expect(overlaps.filter((one) => !one.overlaps).length).toBeGreaterThan(20);
  });

  it.each(overlaps)("%j", ({ document, patch, overlaps: expected, ...read }) => {
    const before = document === null ? undefined : (decodeFabric(document) as EntityDocument);
    const operation = readOperation({ op: "patch", id: entityId, patches: [patch] }, "operations.0");
    expect(footprintOverlaps(footprintOf(operation, before), read)).toBe(expected);
  });
});

describe("a footprint", () => {
  it("overlaps every read that sees something else after the operation", () => {
    const met = { changed: 0, shallow: 0, untouched: 0 };
    for (let seed = 0; seed < 6_000; seed += 1) {
      const pick = seededPick(seed);
      const before = randomDocument(pick);
      const edit = randomFittingOperation(pick, before);
      if (edit === undefined) continue;
      for (const seen of [before, edit.document]) {
        const read = randomRead(pick, seen);
        const isOverlapping = footprintOverlaps(edit.footprint, read);
        const hasChanged = !sameSight(look(before, read), look(edit.document, read));
        if (hasChanged) expect(isOverlapping, `seed ${seed}, ${JSON.stringify({ before, ...edit, read })}`).toBe(true);
        if (hasChanged) met.changed += 1;
        if (hasChanged && read.shallow) met.shallow += 1;
        if (!isOverlapping) met.untouched += 1;
      }
    }
    expect(met.changed).toBeGreaterThan(1_000);
    expect(met.shallow).toBeGreaterThan(200);
    expect(met.untouched).toBeGreaterThan(1_000);
  });

  it("that covers a path last makes what was there before of no account", () => {
    let met = 0;
    for (let seed = 0; seed < 12_000; seed += 1) {
      const pick = seededPick(seed);
      const before = randomDocument(pick);
      const edit = randomFittingOperation(pick, before);
      const last = edit?.footprint.at(-1);
      if (edit === undefined || last === undefined) continue;
      const path = pick(2) === 0 ? randomPath(pick, before) : randomPath(pick, edit.document);
      if (!touchCovers(last, path)) continue;
      // Any other document that the operation fits, arrays in place of objects included.
      const other = applyIfFits(randomDocument(pick), edit.operation);
      if (other === undefined) continue;
      const what = `seed ${seed}, ${JSON.stringify({ before, ...edit, path })}`;
      expect(sameSight(valueAt(edit.document, path), valueAt(other.document, path)), what).toBe(true);
      met += 1;
    }
    expect(met).toBeGreaterThan(300);
  });

  it("is JSON, so that it can be stored", () => {
    for (let seed = 0; seed < 500; seed += 1) {
      const pick = seededPick(seed);
      const edit = randomFittingOperation(pick, randomDocument(pick));
      expect(parseOwnJsonText(JSON.stringify(edit?.footprint ?? []))).toEqual(edit?.footprint ?? []);
    }
  });

  it("of a set or a delete touches and covers everything", () => {
    const whole = [{ kind: "write", path: [], covers: true }];
    expect(footprintOf({ op: "set", id: entityId, value: {} }, undefined)).toEqual(whole);
    expect(footprintOf({ op: "delete", id: entityId }, { a: 1 })).toEqual(whole);
  });

  it("of an add that makes parents touches from the highest one made, and covers its own path", () => {
    const made = [{ kind: "write", path: ["a"], made: ["b", "c"], covers: true }];
    expect(touches({}, { op: "add", path: "/a/b/c", value: 1 })).toEqual(made);
    const document = [{ kind: "write", path: [], made: ["a", "b"], covers: true }];
    expect(touches(undefined, { op: "add", path: "/a/b", value: 1 })).toEqual(document);
  });

  it("says what moves content: edits of arrays and moves, and these cover nothing", () => {
    const before = { list: [1, 2], a: 1 };
    const moving: PatchOp[] = [
      { op: "add", path: "/list/0", value: 1 },
      { op: "add", path: "/list/-", value: 1 },
      { op: "add", path: "/list/2/x", value: 1 },
      { op: "add", path: "/new/-", value: 1 },
      { op: "remove", path: "/list/0" },
      { op: "splice", path: "/list", index: 0, remove: 0, add: [] },
      { op: "move", from: "/a", path: "/b" },
      { op: "move", from: "/a", path: "/a" },
    ];
    for (const patch of moving) {
      const [touch] = touches(before, patch);
      if (touch === undefined) throw new Error("nothing was touched");
      expect(movesContent(touch), JSON.stringify(patch)).toBe(true);
      expect(touchCovers(touch, ["list", "0"]) || touchCovers(touch, ["new"]) || touchCovers(touch, ["a"])).toBe(false);
    }
    for (const patch of [
      { op: "replace", path: "/list/0", value: 1 },
      { op: "add", path: "/b", value: 1 },
      { op: "remove", path: "/a" },
    ] as const) {
      expect(touches(before, patch).some(movesContent)).toBe(false);
    }
  });

  it("of a test is empty", () => {
    expect(touches({ a: 1 }, { op: "test", path: "/a", value: 1 })).toEqual([]);
  });
});

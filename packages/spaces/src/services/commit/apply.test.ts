// The rule by which a patched document is not written out to be measured: what a patch adds is in its own text.
import { applyOperation } from "@claudemesh/protocol/spaces/apply";
import { type EntityDocument, writeDocument } from "@claudemesh/protocol/spaces/entity";
import { encodeOperation } from "@claudemesh/protocol/spaces/operation-wire";
import type { Operation, PatchOp } from "@claudemesh/protocol/spaces/operations";
import { PatchFailure } from "@claudemesh/protocol/spaces/patch-failure";
import { expect, test } from "vitest";
import { RandomWork } from "../../../../../tests/support/random-space-work.ts";
import { createRandom, seedOfTheDay } from "../../../../../tests/support/seed.ts";
import { bodyOf } from "../../core/entity-history.ts";

const lengthOf = (document: EntityDocument | undefined) =>
  document === undefined ? 0 : writeDocument(document).length;

/** The document after it, and how much shorter than allowed it is; undefined: the patch does not fit. */
function apply(document: EntityDocument | undefined, operation: Operation) {
  try {
    const after = applyOperation(document, operation);
    const body = bodyOf(encodeOperation(operation)) ?? "";
    return { after, spare: lengthOf(document) + body.length - lengthOf(after) };
  } catch (error) {
    if (error instanceof PatchFailure) return undefined;
    throw error;
  }
}

test("a patch makes a document longer by no more than its own length", () => {
  let fresh = 1;
  const work = new RandomWork(createRandom(seedOfTheDay()), () => fresh++);
  let document: EntityDocument | undefined;
  let patched = 0;
  for (let round = 0; round < 5_000; round += 1) {
    const operation = work.operation("a:1", document);
    const applied = apply(document, operation);
    if (applied === undefined) continue;
    document = applied.after;
    if (operation.op !== "patch") continue;
    patched += 1;
    expect(applied.spare, JSON.stringify(encodeOperation(operation))).toBeGreaterThanOrEqual(0);
  }
  expect(patched).toBeGreaterThan(500);
});

test.each<[string, EntityDocument | undefined, PatchOp]>([
  ["makes the first key of a document", undefined, { op: "add", path: "/v", value: 1 }],
  ["makes an object one that is escaped", { v: {} }, { op: "add", path: "/v/~1", value: 1 }],
  ["leaves only a key that is escaped", { v: { "/": 1, a: 1 } }, { op: "remove", path: "/v/a" }],
  ["does both in one move", { v: { "/": 1, a: 1 }, w: {} }, { op: "move", from: "/v/a", path: "/w/~1" }],
  ["adds leaves that are escaped", { v: [] }, { op: "splice", path: "/v", index: 0, remove: 0, add: [undefined, 1n] }],
  ["has keys that are escaped in text", { v: {} }, { op: "add", path: '/v/"\u0001"', value: "\u0001" }],
])("a patch that %s is no exception", (_, document, patch) => {
  const applied = apply(document, { op: "patch", id: "a:1", patches: [patch] });
  expect(applied?.spare).toBeGreaterThanOrEqual(0);
});

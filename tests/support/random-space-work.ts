// Random operations and read paths over a few small documents, so that they meet each other often.
import type { EntityDocument } from "@claudemesh/protocol/spaces/entity";
import { type FabricValue, isFabricArray } from "@claudemesh/protocol/spaces/fabric-value";
import type { Operation, PatchOp } from "@claudemesh/protocol/spaces/operations";
import { valueAt } from "@claudemesh/protocol/spaces/value-at";
import type { Random } from "./seed.ts";

export const entityIds = ["e:0", "e:1", "e:2"] as const;

/** Of a document's fields and of one place in its list. */
export const smallPatches = (at: number, value: number): PatchOp[] => [
  { op: "add", path: "/value/a", value },
  { op: "replace", path: "/value/a", value },
  { op: "add", path: "/value/b/x", value },
  { op: "remove", path: "/value/b/x" },
  { op: "replace", path: "/value/b", value: { x: value } },
  { op: "add", path: "/value/list/-", value },
  { op: "add", path: `/value/list/${at}`, value },
  { op: "replace", path: `/value/list/${at}`, value },
  { op: "remove", path: `/value/list/${at}` },
];

export class RandomWork {
  readonly #random: Random;
  readonly #fresh: () => number;

  /** `fresh` gives a value that was never used before, so that every write shows. */
  constructor(random: Random, fresh: () => number) {
    this.#random = random;
    this.#fresh = fresh;
  }

  operation(id: string, document: EntityDocument | undefined): Operation {
    const kind = this.#random.below(20);
    if (document === undefined || kind < 2) return { op: "set", id, value: this.#document() };
    if (kind === 2) return { op: "delete", id };
    const patches = Array.from({ length: 1 + this.#random.below(2) }, () => this.#patch(document));
    return { op: "patch", id, patches };
  }

  read(): { readonly path: readonly string[]; readonly shallow: boolean } {
    const path = this.#random.pick<readonly string[]>([
      [],
      ["value"],
      ["value", "a"],
      ["value", "b"],
      ["value", "b", "x"],
      ["value", "list"],
      ["value", "list", "0"],
      ["value", "list", "1"],
      ["value", "list", "2"],
      ["value", "c"],
      ["value", "c", "x"],
    ]);
    return { path, shallow: this.#random.below(5) === 0 };
  }

  #document(): EntityDocument {
    const list = Array.from({ length: 2 + this.#random.below(3) }, () => this.#fresh());
    return { value: { a: this.#fresh(), b: { x: this.#fresh() }, list } };
  }

  #patch(document: EntityDocument): PatchOp {
    const length = lengthOf(valueAt(document, ["value", "list"]));
    const at = this.#random.below(Math.max(1, length));
    const value = this.#fresh();
    return this.#random.pick<PatchOp>([
      ...smallPatches(at, value),
      { op: "splice", path: "/value/list", index: at, remove: Math.min(1, length - at), add: [value] },
      { op: "splice", path: "/value/list", index: 0, remove: Math.min(1, length), add: [] },
      { op: "move", from: "/value/b", path: "/value/c" },
      { op: "move", from: "/value/c", path: "/value/b" },
      { op: "move", from: `/value/list/${at}`, path: "/value/a" },
      { op: "move", from: "/value/a", path: "/value/c" },
      { op: "move", from: "/value/list/0", path: "/value/list/1" },
    ]);
  }
}

function lengthOf(found: { readonly exists: boolean; readonly value?: FabricValue }): number {
  return isFabricArray(found.value) ? found.value.length : 0;
}

import type { FabricObject } from "@claudemesh/protocol/spaces/fabric-value";
import { collapseReads } from "@claudemesh/protocol/spaces/read-recording";
import { describe, expect, it } from "vitest";
import { ReadNode } from "./read-trie.ts";
import { viewOf } from "./recording-view.ts";

type Document = { value: { owner: string | null; tags: string[]; size: { w: number; h: number }; none?: number } };
const document = {
  value: { owner: "bob", tags: ["a", "b"], size: { w: 1, h: 2 } },
  meta: { at: 3n },
} satisfies FabricObject;

/** What a function that looks at the document is on record for. */
function readsOf(look: (view: Document) => unknown): string[] {
  const root = new ReadNode();
  look(viewOf(document, root) as Document);
  return collapseReads(root.reads()).map(({ path, shallow }) => `${path.join(".")}${shallow === true ? "/" : ""}`);
}

describe("a recording view", () => {
  it.each<[string, (view: Document) => unknown, string[]]>([
    ["a value by its path", (d) => d.value.owner, ["value.owner"]],
    ["two values", (d) => [d.value.owner, d.value.size.w], ["value.owner", "value.size.w"]],
    ["only that something is there", (d) => d.value.size !== undefined, ["value.size/"]],
    ["only that the document is there", (d) => d !== undefined, ["/"]],
    ["that a key is missing", (d) => d.value.none, ["value.none/"]],
    ["that a key is there", (d) => "owner" in d.value, ["value.owner/"]],
    ["that a key is its own", (d) => Object.hasOwn(d.value, "owner"), ["value.owner/"]],
    ["the keys, and no value", (d) => Object.keys(d.value), ["value/"]],
    [
      "the keys, and the values that are taken",
      (d) => Object.keys(d.value).length > 1 && d.value.owner,
      ["value/", "value.owner"],
    ],
    ["a missing key as part of the keys", (d) => [Object.keys(d.value), d.value.none], ["value/"]],
    ["the length", (d) => d.value.tags.length, ["value.tags/"]],
    [
      "the items up to the one that is found",
      (d) => d.value.tags.find((tag) => tag === "a"),
      ["value.tags/", "value.tags.0"],
    ],
    ["every item of a loop", (d) => [...d.value.tags], ["value.tags/", "value.tags.0", "value.tags.1"]],
    ["an item beyond the end", (d) => d.value.tags[7], ["value.tags.7/"]],
    ["everything that is copied", (d) => ({ ...d.value.size }), ["value.size/", "value.size.w", "value.size.h"]],
    [
      "everything that is written out",
      (d) => JSON.stringify(d.value.size),
      ["value.size/", "value.size.w", "value.size.h"],
    ],
  ])("records %s", (_, look, expected) => {
    expect(readsOf(look)).toEqual(expected);
  });

  it("looks like the document", () => {
    const view = viewOf(document, new ReadNode());
    expect(view).toEqual(document);
    expect(Array.isArray((view as Document).value.tags)).toBe(true);
    expect((view as Document).value.tags.map((tag) => tag.toUpperCase())).toEqual(["A", "B"]);
    expect((view as Document).value).toBe((view as Document).value);
  });

  it("cannot be changed", () => {
    const view = viewOf(document, new ReadNode()) as Document;
    expect(() => (view.value.owner = "eve")).toThrow(/tx\.patch/);
    expect(() => view.value.tags.push("c")).toThrow(TypeError);
    expect(() => Reflect.deleteProperty(view.value, "owner")).toThrow(TypeError);
    expect(() => Object.defineProperty(view, "x", { value: 1 })).toThrow(TypeError);
    expect(() => Object.freeze(view)).toThrow(TypeError);
    expect(document.value.owner).toBe("bob");
  });

  it("hands out bytes as a copy, and frozen documents like any other", () => {
    const bytes = new Uint8Array([1, 2]);
    const view = viewOf(Object.freeze({ value: Object.freeze({ bytes }) }), new ReadNode()) as {
      value: { bytes: Uint8Array };
    };
    view.value.bytes[0] = 9;
    expect(bytes).toEqual(new Uint8Array([1, 2]));
  });
});

// The checks that make hashing unambiguous: 0x00 in meta, the size of meta, mentions, and what may be replied to.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../json/strict-json.ts";
import { checkReplyToId, type Meta, readMentions, readMeta } from "./envelope.ts";
import { limits } from "./limits.ts";

const alice = "0a".repeat(32);
const bob = "0b".repeat(32);
const carol = "0c".repeat(32);

const refusal = (code: string, field: string) =>
  expect.objectContaining({ name: "MeshError", code, details: expect.objectContaining({ field }) });

describe("meta", () => {
  it("is the empty text when absent or empty", () => {
    expect(readMeta(undefined)).toBe("");
    expect(readMeta({})).toBe("");
  });

  it("is its canonical text otherwise", () => {
    expect(readMeta({ b: [1.0, "x"], a: { d: null, c: true } })).toBe('{"a":{"c":true,"d":null},"b":[1,"x"]}');
  });

  it("counts __proto__ like any key, in place and not as a prototype", () => {
    const meta: Meta = JSON.parse('{"a":1,"__proto__":{"mentions":["x"]}}');
    expect(readMeta(meta)).toBe('{"__proto__":{"mentions":["x"]},"a":1}');
    expect(readMentions(meta)).toEqual([]);
  });

  const withNul: [string, Meta][] = [
    ["a value", { a: "x\0" }],
    ["a value that is nothing else", { a: "\0" }],
    ["a key", { "a\0b": 1 }],
    ["a key that is nothing else", { "\0": 1 }],
    ["a value deep inside", { a: [{ b: ["ok", { c: "\0x" }] }] }],
    ["a key deep inside", { a: [[{ b: { "x\0": null } }]] }],
    ["the last of many values", { a: 1, b: ["x", "y", "z\0"] }],
    ["a value under __proto__", JSON.parse('{"__proto__":{"a":"\\u0000"}}')],
    ["a mention", { mentions: ["\0"] }],
  ];
  it.each(withNul)("is refused with 0x00 in %s", (_where, meta) => {
    expect(() => readMeta(meta)).toThrow(refusal("nul_in_field", "meta"));
  });

  it("with 0x00 planted anywhere is refused, and without it is read", () => {
    const leaf = fc.constantFrom<JsonValue>("", "x", "\0", "a\0", 1, null, true);
    const key = fc.constantFrom("a", "b", "c\0", "__proto__");
    const { meta } = fc.letrec<{ value: JsonValue; meta: JsonValue }>((tie) => ({
      value: fc.oneof({ depthSize: "small" }, leaf, fc.array(tie("value"), { maxLength: 3 }), tie("meta")),
      meta: fc.array(fc.tuple(key, tie("value")), { maxLength: 3 }).map((members) => Object.fromEntries(members)),
    }));
    let clean = 0;
    let planted = 0;
    fc.assert(
      fc.property(meta, (value) => {
        const read = () => readMeta(value as Meta);
        if (JSON.stringify(value).includes("\\u0000")) {
          planted += 1;
          expect(read).toThrow(refusal("nul_in_field", "meta"));
        } else {
          clean += 1;
          expect(read()).not.toContain("\0");
        }
      }),
      { numRuns: 2000 },
    );
    expect(clean).toBeGreaterThan(200);
    expect(planted).toBeGreaterThan(200);
  });

  it("may have as many canonical bytes as the limit, and not one more", () => {
    const metaOf = (bytes: number): Meta => ({ a: "x".repeat(bytes - '{"a":""}'.length) });
    expect(readMeta(metaOf(limits.metaBytes))).toHaveLength(limits.metaBytes);
    expect(() => readMeta(metaOf(limits.metaBytes + 1))).toThrow(refusal("payload_too_large", "meta"));
  });

  it("is measured in bytes, not in characters", () => {
    const euros = "€".repeat((limits.metaBytes - '{"a":""}'.length) / 3);
    expect(readMeta({ a: euros })).toContain("€");
    expect(() => readMeta({ a: `${euros}€` })).toThrow(refusal("payload_too_large", "meta"));
  });

  it("that is too large names the limit", () => {
    expect(() => readMeta({ a: "x".repeat(limits.metaBytes) })).toThrow(
      expect.objectContaining({ status: 413, details: { field: "meta", limit_bytes: limits.metaBytes } }),
    );
  });
});

describe("mentions", () => {
  it("are none where meta or meta.mentions is absent", () => {
    expect(readMentions(undefined)).toEqual([]);
    expect(readMentions({})).toEqual([]);
    expect(readMentions({ other: [alice] })).toEqual([]);
  });

  it("are meta's own, never what an object inherits", () => {
    expect(readMentions(Object.create({ mentions: [alice] }))).toEqual([]);
  });

  it("are sorted and distinct public keys", () => {
    expect(readMentions({ mentions: [] })).toEqual([]);
    expect(readMentions({ mentions: [alice] })).toEqual([alice]);
    expect(readMentions({ mentions: [alice, bob, carol] })).toEqual([alice, bob, carol]);
    expect(readMeta({ mentions: [alice, bob] })).toBe(`{"mentions":["${alice}","${bob}"]}`);
  });

  const bad: [string, JsonValue][] = [
    ["in the wrong order", [bob, alice]],
    ["twice the same", [alice, alice]],
    ["twice the same with others between", [alice, bob, alice]],
    ["with capitals", ["0A".repeat(32)]],
    ["too short", [alice.slice(2)]],
    ["a name", ["alice"]],
    ["an address", [`dm:${alice}`]],
    ["an empty text", [""]],
    ["a number", [1]],
    ["null in the list", [null]],
    ["a list in the list", [[alice]]],
    ["no list but a key", alice],
    ["no list but null", null],
    ["no list but an object", { 0: alice, length: 1 }],
  ];
  it.each(bad)("are refused %s", (_what, mentions) => {
    expect(() => readMentions({ mentions })).toThrow(refusal("invalid_mentions", "meta.mentions"));
    expect(() => readMeta({ mentions })).toThrow(refusal("invalid_mentions", "meta.mentions"));
  });

  it("may be as many as the limit, and not one more", () => {
    const keys = (count: number) => Array.from({ length: count }, (_, at) => at.toString(16).padStart(64, "0"));
    expect(readMentions({ mentions: keys(limits.mentions) })).toHaveLength(limits.mentions);
    expect(() => readMentions({ mentions: keys(limits.mentions + 1) })).toThrow(
      refusal("invalid_mentions", "meta.mentions"),
    );
  });

  it("have one spelling for each set of members", () => {
    const key = fc.stringMatching(/^[0-9a-f]{64}$/);
    fc.assert(
      fc.property(fc.uniqueArray(key, { minLength: 2, maxLength: 5 }), fc.nat(), (keys, seed) => {
        const sorted = keys.toSorted();
        expect(readMentions({ mentions: sorted })).toEqual(sorted);
        const at = seed % (sorted.length - 1);
        const swapped = sorted.with(at, sorted[at + 1] ?? "").with(at + 1, sorted[at] ?? "");
        expect(() => readMentions({ mentions: swapped })).toThrow(refusal("invalid_mentions", "meta.mentions"));
      }),
      { numRuns: 200 },
    );
  });
});

describe("reply_to_id", () => {
  it.each([undefined, "018f3c1e-7b2a-7c3d-9e4f-5a6b7c8d9e0f", "!", "~", "r".repeat(128)])("may be %j", (id) => {
    expect(() => checkReplyToId(id)).not.toThrow();
  });

  it.each(["", " ", "a b", "a\n", "\u007f", "é", "r".repeat(129)])("is never %j", (id) => {
    expect(() => checkReplyToId(id)).toThrow(refusal("invalid_request", "reply_to_id"));
  });

  it.each(["\0", "a\0b", "a\0"])("with 0x00 is refused by that name: %j", (id) => {
    expect(() => checkReplyToId(id)).toThrow(refusal("nul_in_field", "reply_to_id"));
  });
});

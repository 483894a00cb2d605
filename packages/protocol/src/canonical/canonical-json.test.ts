// Canonical JSON against the RFC 8785 vectors, against what is not JSON, and as a property of random values.
import { readFileSync } from "node:fs";
import vm from "node:vm";
import canonicalize from "canonicalize";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type JsonObject, type JsonValue, parseOwnJsonText, parseStrictJsonText } from "../json/strict-json.ts";
import { canonicalJson, canonicalMeta } from "./canonical-json.ts";

interface Vectors {
  numbers: { bits: string; text: string | null }[];
  documents: { name: string; input: string; output: string; utf8_hex: string }[];
  refused: { name: string; input: string }[];
  meta: { name: string; input: string | null; output: string }[];
}

const vectors: Vectors = JSON.parse(readFileSync(new URL("../../vectors/canonical.json", import.meta.url), "utf8"));

function doubleFromBits(bits: string): number {
  return Buffer.from(bits, "hex").readDoubleBE();
}

/** What a caller without types could pass. */
const canonicalOfAnything = canonicalJson as (value: unknown) => string;

describe("the RFC 8785 vectors", () => {
  it("have every row of the number table", () => {
    expect(vectors.numbers).toHaveLength(26);
    expect(vectors.numbers.filter((row) => row.text === null)).toHaveLength(2);
  });

  it.each(vectors.numbers)("number $bits is $text", ({ bits, text }) => {
    const value = doubleFromBits(bits);
    if (text === null) {
      expect(() => canonicalJson(value)).toThrow(TypeError);
      expect(() => canonicalJson({ deep: [value] })).toThrow(TypeError);
      return;
    }
    expect(canonicalJson(value)).toBe(text);
    expect(canonicalJson({ deep: [value] })).toBe(`{"deep":[${text}]}`);
  });

  it.each(vectors.documents)("document: $name", ({ input, output, utf8_hex }) => {
    const text = canonicalJson(parseStrictJsonText(input, { maxDepth: 8 }));
    expect(text).toBe(output);
    expect(Buffer.from(text, "utf8").toString("hex")).toBe(utf8_hex);
  });

  it.each(vectors.refused)("refused: $name", ({ input }) => {
    expect(() => canonicalJson(JSON.parse(input))).toThrow(TypeError);
  });

  it.each(vectors.meta)("meta: $name", ({ input, output }) => {
    const meta = input === null ? undefined : (JSON.parse(input) as JsonObject);
    expect(canonicalMeta(meta)).toBe(output);
  });
});

describe("what is not JSON", () => {
  const cyclic: unknown[] = [];
  cyclic.push({ again: cyclic });
  const sparse = [1];
  sparse[2] = 3;
  class Point {
    x = 1;
  }
  const cases: [string, unknown][] = [
    ["undefined", undefined],
    ["undefined as a member", { a: undefined }],
    ["undefined in an array", [undefined]],
    ["a function", () => 1],
    ["a function as a member", { a: () => 1 }],
    ["a function named toJSON", { toJSON: () => 1 }],
    ["a symbol", Symbol("a")],
    ["a symbol as a key", { [Symbol("a")]: 1 }],
    ["a bigint", 1n],
    ["a bigint as a member", { a: 1n }],
    ["NaN", [Number.NaN]],
    ["minus infinity", [Number.NEGATIVE_INFINITY]],
    ["a boxed number", Object(1)],
    ["a boxed string", [Object("a")]],
    ["a date", new Date(0)],
    ["a map", new Map()],
    ["bytes", Uint8Array.of(1)],
    ["a Node buffer", Buffer.from("a")],
    ["an instance of a class", new Point()],
    ["an object that inherits members", Object.create({ a: 1 })],
    ["an array with a hole", sparse],
    ["an array with a member that is no element", Object.assign([1], { extra: 1 })],
    ["a value that contains itself", cyclic],
    ["a lone surrogate", "\ud800"],
    ["a lone surrogate in an array", ["a\udc00"]],
    ["a lone surrogate in a key", { "\udc00": 1 }],
  ];

  it.each(cases)("%s is a TypeError", (_name, value) => {
    expect(() => canonicalOfAnything(value)).toThrow(TypeError);
  });

  it.each([[null], [[]], ["a"], [1]])("meta %j is a TypeError", (meta) => {
    expect(() => canonicalMeta(meta as unknown as JsonObject)).toThrow(TypeError);
  });
});

describe("what is JSON though it looks odd", () => {
  it("is an object without a prototype", () => {
    expect(canonicalJson(Object.assign(Object.create(null), { b: 1, a: 2 }))).toBe('{"a":2,"b":1}');
  });

  it("is an object of another realm", () => {
    expect(canonicalJson(vm.runInNewContext('({ b: [1], a: { c: "x" } })'))).toBe('{"a":{"c":"x"},"b":[1]}');
  });

  it("is one value in two places", () => {
    const shared = { x: [1] };
    expect(canonicalJson([shared, shared, { shared }])).toBe('[{"x":[1]},{"x":[1]},{"shared":{"x":[1]}}]');
  });

  it("is a value as deep as memory allows", () => {
    let value: JsonValue = 1;
    for (let depth = 0; depth < 100_000; depth += 1) value = [value];
    expect(canonicalJson(value)).toBe(`${"[".repeat(100_000)}1${"]".repeat(100_000)}`);
  });
});

describe("any JSON value", () => {
  const anyString = fc.string({ unit: "binary" }).map((text) => text.toWellFormed());
  const key = fc.oneof(
    anyString,
    fc.constantFrom("a", "b", "10", "9", "__proto__", "toJSON", "é", "z", "\ufb33", "😀"),
  );
  const value = fc.letrec<{ value: JsonValue; record: JsonValue }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom<JsonValue>(null, true, false, 0, -0, "", 1e21, 1e-7, 2 ** 53, 2 ** 60),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.integer(),
      anyString,
      fc.array(tie("value"), { maxLength: 4 }),
      tie("record"),
    ),
    record: fc
      .array(fc.tuple(key, tie("value")), { maxLength: 6 })
      .map((members) => Object.fromEntries(members) as JsonValue),
  })).value;

  /** The same value with members added in the opposite order and minus zero made zero. */
  function rebuild(json: JsonValue): JsonValue {
    if (Array.isArray(json)) return json.map(rebuild);
    if (json !== null && typeof json === "object") {
      return Object.fromEntries(
        Object.entries(json)
          .reverse()
          .map(([name, member]) => [name, rebuild(member)]),
      );
    }
    return json === 0 ? 0 : json;
  }

  function expectSortedKeys(json: JsonValue, text: string): void {
    if (json === null || typeof json !== "object") return;
    if (!Array.isArray(json)) {
      // Comparing with < is comparing UTF-16 code units.
      const sorted = Object.keys(json).toSorted((left, right) => (left < right ? -1 : 1));
      expect(text).toContain(
        `{${sorted.map((name) => `${JSON.stringify(name)}:${canonicalJson(json[name] ?? null)}`).join(",")}}`,
      );
    }
    for (const member of Object.values(json)) expectSortedKeys(member, text);
  }

  it("has the text that the package gives it", () => {
    fc.assert(fc.property(value, (any) => canonicalJson(any) === canonicalize(any)));
  });

  it("has one canonical text, whatever the order of its keys, which parses back to it", () => {
    let records = 0;
    fc.assert(
      fc.property(value, (json) => {
        const text = canonicalJson(json);
        if (text.startsWith("{") && text !== "{}") records += 1;
        const read = parseOwnJsonText(text);
        expect(canonicalJson(read)).toBe(text);
        expect(canonicalJson(rebuild(json))).toBe(text);
        expect(read).toEqual(rebuild(json));
        expectSortedKeys(json, text);
      }),
      { numRuns: 2000 },
    );
    expect(records).toBeGreaterThan(50);
  });

  it("that differs has another canonical text", () => {
    let different = 0;
    fc.assert(
      fc.property(value, value, (left, right) => {
        const sameText = canonicalJson(left) === canonicalJson(right);
        const sameValue = JSON.stringify(sortDeep(left)) === JSON.stringify(sortDeep(right));
        if (!sameValue) different += 1;
        expect(sameText).toBe(sameValue);
      }),
      { numRuns: 1000 },
    );
    expect(different).toBeGreaterThan(100);
  });

  /** An order-free picture of a value that uses nothing of the code under test. */
  function sortDeep(json: JsonValue): unknown {
    if (Array.isArray(json)) return ["array", ...json.map(sortDeep)];
    if (json === null || typeof json !== "object") return json;
    const members = Object.entries(json).map(([name, member]) => JSON.stringify([name, sortDeep(member)]));
    return ["object", ...members.sort()];
  }
});

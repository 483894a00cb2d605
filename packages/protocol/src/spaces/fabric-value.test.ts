// Fabric values: one encoding per value, the way back exact, and everything without a form refused by name and place.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson } from "../canonical/canonical-json.ts";
import { MeshError } from "../errors/errors.ts";
import type { JsonValue } from "../json/strict-json.ts";
import { parseStrictJsonText } from "../json/strict-json.ts";
import {
  decodeFabric,
  encodeFabric,
  type FabricValue,
  fabricDepth,
  fabricEqual,
  maxBigintDigits,
  maxEncodedDepth,
  maxFabricDepth,
} from "./fabric-value.ts";

const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 6 }),
  fc.constantFrom("/", "__proto__", "constructor", "prototype", "bigint@1", "object@1", "", "\u0000"),
);
const number = fc.oneof(
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Number.isInteger(n)),
);
const { value: fabricValue } = fc.letrec<{ value: FabricValue; object: FabricValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.constantFrom<FabricValue>(null, true, false, undefined),
    number,
    text,
    fc.bigInt(),
    fc.uint8Array({ maxLength: 8 }),
    fc.array(tie("value"), { maxLength: 4 }),
    tie("object"),
  ),
  object: fc.oneof(
    fc.dictionary(text, tie("value") as fc.Arbitrary<FabricValue>, { maxKeys: 4 }),
    fc.record({ "/": tie("value") as fc.Arbitrary<FabricValue> }),
  ) as fc.Arbitrary<FabricValue>,
}));

function nest(depth: number, leaf: FabricValue = 1): FabricValue {
  let value = leaf;
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

function codeOf(run: () => unknown): string | undefined {
  try {
    run();
  } catch (error) {
    if (error instanceof MeshError) return error.code;
    throw error;
  }
  return undefined;
}

describe("a fabric value", () => {
  it("comes back from its encoding, by way of text too", () => {
    fc.assert(
      fc.property(fabricValue, (value) => {
        const encoded = encodeFabric(value);
        expect(fabricEqual(decodeFabric(encoded), value)).toBe(true);
        const reread = parseStrictJsonText(JSON.stringify(encoded), { maxDepth: maxEncodedDepth });
        expect(fabricEqual(decodeFabric(reread), value)).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });

  it("has one encoding: equal values have the same canonical text, and others do not", () => {
    fc.assert(
      fc.property(fabricValue, fabricValue, (a, b) => {
        const isSame = canonicalJson(encodeFabric(a)) === canonicalJson(encodeFabric(b));
        expect(fabricEqual(a, b)).toBe(isSame);
        expect(fabricEqual(a, decodeFabric(encodeFabric(a)))).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it("is what a JSON text decodes to, or the text is refused: no two texts stand for one value", () => {
    const json = fc.oneof(fc.jsonValue(), fc.record({ "/": fc.jsonValue() }));
    fc.assert(
      fc.property(json, (value) => {
        let decoded: FabricValue;
        try {
          decoded = decodeFabric(value as JsonValue);
        } catch (error) {
          expect(error).toBeInstanceOf(MeshError);
          return;
        }
        expect(canonicalJson(encodeFabric(decoded))).toBe(canonicalJson(value as JsonValue));
      }),
      { numRuns: 500 },
    );
  });

  it.each<[FabricValue, string]>([
    [5n, '{"/":{"bigint@1":"5"}}'],
    [-(2n ** 64n), '{"/":{"bigint@1":"-18446744073709551616"}}'],
    [undefined, '{"/":{"undefined@1":null}}'],
    [new Uint8Array([251, 255, 0]), '{"/":{"bytes@1":"-_8A"}}'],
    [{ "/": 1 }, '{"/":{"object@1":1}}'],
    [{ "/": { "bigint@1": "5" } }, '{"/":{"object@1":{"bigint@1":"5"}}}'],
    [{ "/": { "/": null } }, '{"/":{"object@1":{"/":{"object@1":null}}}}'],
    [{ "/": 1, a: 2 }, '{"/":1,"a":2}'],
    [{ a: undefined }, '{"a":{"/":{"undefined@1":null}}}'],
    [-0, "0"],
  ])("%o is written as %s", (value, written) => {
    expect(JSON.stringify(encodeFabric(value))).toBe(written);
    expect(decodeFabric(JSON.parse(written))).toEqual(value === 0 ? 0 : value);
  });

  it("has no negative zero, written or read", () => {
    expect(Object.is(encodeFabric(-0), 0)).toBe(true);
    expect(Object.is(decodeFabric(-0), 0)).toBe(true);
    expect(fabricEqual(-0, 0)).toBe(true);
  });

  it("keeps __proto__ as a key and leaves prototypes alone", () => {
    const value = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":2}}') as FabricValue;
    const back = decodeFabric(encodeFabric(value));
    expect(JSON.stringify(back)).toBe('{"__proto__":{"polluted":1},"constructor":{"prototype":2}}');
    expect(Object.getPrototypeOf(back)).toBe(Object.prototype);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    expect(fabricEqual(value, {})).toBe(false);
    expect(fabricEqual({}, value)).toBe(false);
    expect(fabricEqual(JSON.parse('{"__proto__":{}}') as FabricValue, { a: {} })).toBe(false);
  });

  it.each([
    ["a lone surrogate", "\ud800", "lone_surrogate"],
    ["a lone surrogate in a key", { "\udc00": 1 }, "lone_surrogate"],
    ["a number that is not finite", Number.POSITIVE_INFINITY, "number_out_of_range"],
    ["no number at all", Number.NaN, "number_out_of_range"],
    ["an integer that a double cannot hold", 2 ** 53, "number_out_of_range"],
    ["a large double, which is such an integer too", -1e300, "number_out_of_range"],
    ["a bigint with too many digits", 10n ** BigInt(maxBigintDigits), "number_out_of_range"],
    ["more depth than is allowed", nest(maxFabricDepth + 1), "too_deep"],
    ["a function", () => 1, "invalid_request"],
    ["a symbol", Symbol.iterator, "invalid_request"],
    ["an object with a class", new Date(0), "invalid_request"],
    ["bytes of another width", new Uint16Array(2), "invalid_request"],
    ["an object with a symbol as a key", { [Symbol.iterator]: 1 }, "invalid_request"],
    ["an array with a hole", new Array(2), "invalid_request"],
  ])("is not %s", (_what, value, code) => {
    expect(codeOf(() => encodeFabric(value as FabricValue))).toBe(code);
    expect(codeOf(() => encodeFabric({ a: [value as FabricValue] }))).toBe(code);
  });

  it.each([
    '{"/":1}',
    '{"/":{}}',
    '{"/":[]}',
    '{"/":null}',
    '{"/":{"date@1":"2020"}}',
    '{"/":{"bigint@2":"5"}}',
    '{"/":{"bigint@1":"5","bytes@1":""}}',
    '{"/":{"bigint@1":5}}',
    '{"/":{"bigint@1":"05"}}',
    '{"/":{"bigint@1":"-0"}}',
    '{"/":{"bigint@1":"+5"}}',
    '{"/":{"bigint@1":""}}',
    '{"/":{"bigint@1":"0x5"}}',
    '{"/":{"undefined@1":1}}',
    '{"/":{"bytes@1":"AA=="}}',
    '{"/":{"bytes@1":"AB"}}',
    '{"/":{"bytes@1":"+/8A"}}',
    '{"/":{"bytes@1":null}}',
  ])("is not read from %s", (written) => {
    expect(codeOf(() => decodeFabric(JSON.parse(written)))).toBe("invalid_request");
  });

  it("is refused with the place that is wrong", () => {
    const refusal = (run: () => unknown) => {
      try {
        run();
      } catch (error) {
        return (error as MeshError).details;
      }
      return undefined;
    };
    expect(refusal(() => encodeFabric({ a: [1, Number.NaN] }))).toEqual({ path: ["a", "1"] });
    expect(refusal(() => decodeFabric({ a: { "/": { "object@1": [1e300] } } }))).toEqual({ path: ["a", "/", "0"] });
  });

  it("may be as deep as the limit, escapes and all, and its encoding within its own", () => {
    expect(fabricDepth(nest(maxFabricDepth))).toBe(maxFabricDepth);
    expect(fabricDepth(nest(maxFabricDepth + 50))).toBeGreaterThan(maxFabricDepth);
    expect(fabricEqual(decodeFabric(encodeFabric(nest(maxFabricDepth))), nest(maxFabricDepth))).toBe(true);
    let slashes: FabricValue = 1n;
    for (let level = 0; level < maxFabricDepth; level += 1) slashes = { "/": slashes };
    const written = JSON.stringify(encodeFabric(slashes));
    const reread = parseStrictJsonText(written, { maxDepth: maxEncodedDepth });
    expect(fabricEqual(decodeFabric(reread), slashes)).toBe(true);
    expect(codeOf(() => decodeFabric(encodeDeeper(reread)))).toBe("too_deep");
  });

  it("is never one that contains itself", () => {
    const ring: { a?: unknown } = {};
    ring.a = ring;
    expect(codeOf(() => encodeFabric(ring as FabricValue))).toBe("too_deep");
  });
});

function encodeDeeper(json: JsonValue): JsonValue {
  return { "/": { "object@1": json } };
}

describe("equality of fabric values", () => {
  it.each<[FabricValue, FabricValue, boolean]>([
    [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
    [{ a: undefined }, {}, false],
    [{ a: undefined }, { b: undefined }, false],
    [[undefined], [], false],
    [[], {}, false],
    [new Uint8Array([1]), new Uint8Array([1]), true],
    [new Uint8Array([1]), new Uint8Array([2]), false],
    [new Uint8Array([1]), [1], false],
    [new Uint8Array([1]), { "0": 1 }, false],
    [1n, 1, false],
    [null, undefined, false],
    [null, {}, false],
  ])("of %o and %o is %s", (a, b, isEqual) => {
    expect(fabricEqual(a, b)).toBe(isEqual);
    expect(fabricEqual(b, a)).toBe(isEqual);
  });
});

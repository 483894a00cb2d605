// What the strict reader accepts and refuses: the published vectors, and examples of what vectors can't say
// (offsets, paths, sizes that would not fit a file). Random documents are in strict-json-properties.test.ts.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { canonicalJson } from "../canonical/canonical-json.ts";
import {
  type JsonValue,
  parseOwnJsonText,
  parseStrictJson,
  parseStrictJsonText,
  StrictJsonError,
  type StrictJsonLimits,
  writeStrictJson,
} from "./strict-json.ts";

interface Vector {
  name: string;
  text?: string;
  hex?: string;
  max_depth?: number;
  max_bytes?: number;
}
interface Vectors {
  max_depth: number;
  accept: (Vector & { canonical: string })[];
  refuse: (Vector & { reason: string })[];
}

const vectors: Vectors = JSON.parse(readFileSync(new URL("../../vectors/json.json", import.meta.url), "utf8"));

function bytesOf(vector: Vector): Uint8Array {
  return vector.hex === undefined
    ? new TextEncoder().encode(vector.text)
    : Uint8Array.from(Buffer.from(vector.hex, "hex"));
}

function limitsOf(vector: Vector): StrictJsonLimits {
  const maxDepth = vector.max_depth ?? vectors.max_depth;
  return vector.max_bytes === undefined ? { maxDepth } : { maxDepth, maxBytes: vector.max_bytes };
}

function refusalOf(read: () => unknown): StrictJsonError {
  try {
    read();
  } catch (error) {
    if (error instanceof StrictJsonError) return error;
    throw error;
  }
  throw new Error("the document was accepted");
}

const refuse = (text: string, maxDepth = 8) => refusalOf(() => parseStrictJsonText(text, { maxDepth }));
const refuseBytes = (text: string | Uint8Array, limits: StrictJsonLimits = { maxDepth: 8 }) =>
  refusalOf(() => parseStrictJson(typeof text === "string" ? new TextEncoder().encode(text) : text, limits));

describe("the published vectors", () => {
  it.each(vectors.accept)("accepts $name", (vector) => {
    expect(canonicalJson(parseStrictJson(bytesOf(vector), limitsOf(vector)))).toBe(vector.canonical);
    if (vector.text === undefined) return;
    const value = parseStrictJsonText(vector.text, limitsOf(vector));
    expect(canonicalJson(value)).toBe(vector.canonical);
    expect(value).toEqual(JSON.parse(vector.text));
  });

  it.each(vectors.refuse)("refuses $name", (vector) => {
    expect(refusalOf(() => parseStrictJson(bytesOf(vector), limitsOf(vector))).reason).toBe(vector.reason);
    const { text } = vector;
    if (text === undefined) return;
    expect(refusalOf(() => parseStrictJsonText(text, limitsOf(vector))).reason).toBe(vector.reason);
  });

  it("cover every reason", () => {
    expect([...new Set(vectors.refuse.map((vector) => vector.reason))].sort()).toEqual([
      "duplicate_key",
      "invalid_json",
      "invalid_utf8",
      "lone_surrogate",
      "number_out_of_range",
      "too_deep",
      "too_large",
    ]);
  });
});

describe("values", () => {
  it("keep minus zero, as JSON.parse does", () => {
    expect(parseStrictJsonText("[-0]", { maxDepth: 1 })).toEqual([-0]);
  });

  it("hold __proto__ as an own key and leave the prototype alone", () => {
    const value = parseStrictJsonText('{"__proto__":{"admin":true}}', { maxDepth: 2 });
    expect(Object.keys(value as object)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect((value as { admin?: unknown }).admin).toBeUndefined();
  });
});

describe("a key with an escape", () => {
  // V8 remembers the keys of a shape and can take `\\n`, `\"` or `\u0061` for a remembered key `\\`.
  const readKeys = (text: string) => Object.keys(parseStrictJsonText(text, { maxDepth: 2 }) as object);

  it("is never taken for a key of an earlier document", () => {
    JSON.parse('{"seen":1,"\\\\":2}');
    expect(readKeys('{"seen":1,"\\\\":2}')).toEqual(["seen", "\\"]);
    expect(readKeys('{"seen":1,"\\n":2}')).toEqual(["seen", "\n"]);
    expect(readKeys('{"seen":1,"\\"":2}')).toEqual(["seen", '"']);
    expect(readKeys('{"seen":1,"\\u0061"  :2}')).toEqual(["seen", "a"]);
    JSON.parse('{"seen":1,"a key that is longer than the look-ahead \\\\":2}');
    expect(readKeys('{"seen":1,"a key that is longer than the look-ahead \\n":2}')).toEqual([
      "seen",
      "a key that is longer than the look-ahead \n",
    ]);
  });

  it("is found to be a duplicate whatever came before", () => {
    JSON.parse('{"seen":1,"\\\\":2}');
    expect(refuse('{"seen":1,"\\u0073een":2}').reason).toBe("duplicate_key");
    expect(refuse('{"\\n":1,"\\u000a":2}').reason).toBe("duplicate_key");
  });
});

describe("where an offence is", () => {
  it("is counted in bytes when bytes were read, and in code units when text was", () => {
    expect(refuseBytes('["é😀", !]').offset).toBe(11);
    expect(refuse('["é😀", !]').offset).toBe(8);
  });

  it.each([
    ['{"meta":{"tags":["x",{"a":1,"b":2,"a":3}]}}', "duplicate_key", 34, ["meta", "tags", 1, "a"]],
    ['{"a":[0,9007199254740993]}', "number_out_of_range", 8, ["a", 1]],
    ['{"a":[0,"xy\\ud800"]}', "lone_surrogate", 11, ["a", 1]],
    ['{"a":{"\\ud800":1}}', "lone_surrogate", 7, ["a"]],
    ['{"a":[1,]}', "invalid_json", 8, ["a", 1]],
    ['{"a":1,}', "invalid_json", 7, []],
    ["[[],[[]]]", "too_deep", 5, [1, 0]],
    ["", "invalid_json", 0, []],
    ["{} x", "invalid_json", 3, []],
  ])("%s: %s at %i in %j", (text, reason, offset, path) => {
    expect(refuse(text, reason === "too_deep" ? 2 : 8)).toMatchObject({ reason, offset, path });
  });

  it.each([
    ["22ff22", 1],
    ["22e28222", 1],
    ["efbfbdefbfbdff", 6],
    ["22c3a9efbfbdefbf", 6],
    ["5b5d80", 2],
  ])("the first bad UTF-8 sequence of %s begins at byte %i", (hex, offset) => {
    expect(refuseBytes(Uint8Array.from(Buffer.from(hex, "hex")))).toMatchObject({ reason: "invalid_utf8", offset });
  });

  it("never shows the document in the message of the error", () => {
    expect(refuse('{"secret":1,"secret":2}').message).toBe(
      "JSON refused: a key stands twice in one object (offset 12).",
    );
  });
});

describe("text that is not Unicode", () => {
  it.each([['"\ud800"'], ['{"\udc00":1}'], ['"\ud83d\\ude00"'], ['"\\ud83d\ude00"']])(
    "%j has a lone surrogate",
    (text) => {
      expect(refuse(text).reason).toBe("lone_surrogate");
    },
  );

  it("outside a string is not JSON at all", () => {
    expect(refuse("[\ud800]")).toMatchObject({ reason: "invalid_json", offset: 1 });
  });
});

describe("depth", () => {
  it.each([10_000, 1_000_000])("of %i stops at the limit", (depth) => {
    expect(refuse("[".repeat(depth), 1000)).toMatchObject({ reason: "too_deep", offset: 1000 });
    expect(refuse("[".repeat(depth) + "]".repeat(depth), 64)).toMatchObject({ reason: "too_deep", offset: 64 });
    expect(refuse('{"a":'.repeat(depth), 64)).toMatchObject({ reason: "too_deep", offset: 320 });
  });

  it("within a limit of any size is read, and judged, without the call stack", () => {
    const depth = 100_000;
    const open = '{"a":['.repeat(depth / 2);
    const close = "]}".repeat(depth / 2);
    let value = parseStrictJsonText(`${open}1${close}`, { maxDepth: depth });
    let seen = 0;
    for (; typeof value === "object" && value !== null; seen += 1) value = Object.values(value)[0] ?? null;
    expect(seen).toBe(depth);
    expect(refuse(`${open}9007199254740993${close}`, depth).reason).toBe("number_out_of_range");
  });

  it.each([-1, 1.5, Number.NaN])("limit %d is a bug of the caller", (maxDepth) => {
    expect(() => parseStrictJsonText("1", { maxDepth })).toThrow(RangeError);
  });
});

describe("size", () => {
  it("is counted in UTF-8 bytes for text too", () => {
    expect(parseStrictJsonText('"é"', { maxDepth: 1, maxBytes: 4 })).toBe("é");
    expect(refusalOf(() => parseStrictJsonText('"é"', { maxDepth: 1, maxBytes: 3 })).reason).toBe("too_large");
    expect(refusalOf(() => parseStrictJsonText('"😀"', { maxDepth: 1, maxBytes: 5 })).reason).toBe("too_large");
  });

  it("is judged before anything is read", () => {
    expect(refuseBytes(Uint8Array.of(0xff, 0xff), { maxDepth: 1, maxBytes: 1 })).toMatchObject({
      reason: "too_large",
      offset: 1,
    });
  });
});

describe("a written text", () => {
  it.each<[JsonValue, string]>([
    [2 ** 53 - 1, "9007199254740991"],
    [2 ** 53, "9007199254740992e0"],
    [-(2 ** 53), "-9007199254740992e0"],
    [1e16, "10000000000000000e0"],
    [1e21, "1e+21"],
    [0.1234567890123456, "0.1234567890123456"],
    [
      { n: [1e17, "90071992547409929007"], k90071992547409929007: 1 },
      '{"n":[100000000000000000e0,"90071992547409929007"],"k90071992547409929007":1}',
    ],
    [
      [-1e17, { a: 2 ** 60 }, [1, 1e20]],
      '[-100000000000000000e0,{"a":1152921504606847000e0},[1,100000000000000000000e0]]',
    ],
    ['"90071992547409929007\\', '"\\"90071992547409929007\\\\"'],
  ])("of %j is %s, which reads back", (value, text) => {
    expect(writeStrictJson(value)).toBe(text);
    expect(parseStrictJsonText(writeStrictJson(value), { maxDepth: 8 })).toEqual(value);
    expect(parseOwnJsonText(writeStrictJson(value))).toEqual(value);
    expect(parseOwnJsonText(JSON.stringify(value))).toEqual(value);
    expect(parseOwnJsonText(JSON.stringify(value, undefined, 2))).toEqual(value);
  });
});

describe("a large number in a written text", () => {
  it("is marked wherever it stands", () => {
    for (let before = 0; before < 40; before++) {
      const value = { text: "x".repeat(before), large: 2 ** 53, id: "123456789012345" };
      expect(parseStrictJsonText(writeStrictJson(value), { maxDepth: 1 })).toEqual(value);
    }
  });
});

describe("a text of our own", () => {
  it("is read whatever its depth, and with keys as they were written", () => {
    JSON.parse('{"own":1,"\\\\":2}');
    expect(parseOwnJsonText('{"own":1,"\\n":2}')).toEqual({ own: 1, "\n": 2 });
    expect(JSON.stringify(parseOwnJsonText(`${"[".repeat(2000)}${"]".repeat(2000)}`))).toHaveLength(4000);
  });

  it("that was damaged is refused", () => {
    expect(refusalOf(() => parseOwnJsonText('{"a":1')).reason).toBe("invalid_json");
  });
});

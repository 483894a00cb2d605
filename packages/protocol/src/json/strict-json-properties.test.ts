// Random documents: the strict reader agrees with JSON.parse on what it accepts, and a second, naive judge
// confirms every reason it gives. Floors prove that the documents met each case.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readByGrammar } from "./grammar-reader.ts";
import {
  type JsonValue,
  parseStrictJson,
  parseStrictJsonText,
  StrictJsonError,
  type StrictJsonReason,
  writeStrictJson,
} from "./strict-json.ts";

const MAX_DEPTH = 4;
const utf8 = new TextEncoder();

type Verdict = { value: unknown; reason?: undefined } | { reason: StrictJsonReason };

function judge(read: () => unknown): Verdict {
  try {
    return { value: read() };
  } catch (error) {
    if (error instanceof StrictJsonError) return { reason: error.reason };
    throw error;
  }
}

function judgeByGrammar(text: string): Verdict {
  const reading = readByGrammar(text, MAX_DEPTH);
  return reading.offence === undefined ? { value: reading.value } : { reason: reading.offence.reason };
}

function parsesNatively(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;

/**
 * What JSON.parse should give. V8 can mistake a key with an escape for another key (nodejs/node issue 63785),
 * so the strings are carried through it as hex, which needs no escapes.
 */
function parseNatively(text: string): unknown {
  const hidden = text.replace(TOKEN, (token) =>
    token.startsWith('"') ? `"${Buffer.from(JSON.parse(token), "utf16le").toString("hex")}"` : token,
  );
  return reveal(JSON.parse(hidden));
}

function reveal(value: unknown): unknown {
  if (typeof value === "string") return Buffer.from(value, "hex").toString("utf16le");
  if (Array.isArray(value)) return value.map(reveal);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [reveal(key), reveal(member)]));
}

/** All offences of a text that JSON.parse accepts, by cutting it into tokens; shares nothing with the reader. */
function naiveOffences(text: string): Set<StrictJsonReason> {
  const found = new Set<StrictJsonReason>();
  const tokens = text.match(TOKEN) ?? [];
  const open: (string[] | "array")[] = [];
  for (const [index, token] of tokens.entries()) {
    if (token === "{" || token === "[") open.push(token === "{" ? [] : "array");
    else if (token === "}" || token === "]") open.pop();
    else if (token.startsWith('"')) {
      const decoded: string = JSON.parse(token);
      if (/\p{Surrogate}/u.test(decoded)) found.add("lone_surrogate");
      const keys = open.at(-1);
      if (tokens[index + 1] === ":" && Array.isArray(keys)) {
        if (keys.includes(decoded)) found.add("duplicate_key");
        keys.push(decoded);
      }
    } else if (/^-?[0-9]/.test(token)) {
      if (/^-?[0-9]+$/.test(token)) {
        const size = BigInt(token.replace("-", ""));
        if (size > 2n ** 53n - 1n) found.add("number_out_of_range");
      } else if (!Number.isFinite(Number(token))) found.add("number_out_of_range");
    }
    if (open.length > MAX_DEPTH) found.add("too_deep");
  }
  return found;
}

const space = fc.constantFrom("", "", "", " ", "\n", "\t\r ");
const stringPart = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("a", "b", ":", "{", "]", ",", "é", "€", "😀", "x".repeat(30)) },
  {
    weight: 4,
    arbitrary: fc.constantFrom("\\u0061", "\\u0062", "\\n", '\\"', "\\\\", "\\/", "\\u0000", "\\ud83d\\ude00"),
  },
  { weight: 1, arbitrary: fc.constantFrom("\\ud800", "\\uDFFF", "\\\\ud800", "\\ud83d", "\\ude00") },
);
const stringText = fc.array(stringPart, { maxLength: 4 }).map((parts) => `"${parts.join("")}"`);
const keyText = fc.oneof(
  stringText,
  fc.constantFrom('"a"', '"b"', '"c"', '"\\u0061"', '"__proto__"', '"constructor"', '"0"', '"1"', '""'),
);
const numberText = fc.oneof(
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.constantFrom("-0", "0.0", "1e300", "9007199254740991", "-9007199254740991", "9007199254740993.0", "1E+16"),
  fc.constantFrom("9007199254740992", "-9007199254740992", "123456789012345678901234567890", "1e309", "-1.8E308"),
);
const documentText = fc.letrec<{ value: string; list: string; record: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.oneof(stringText, numberText, fc.constantFrom("true", "false", "null", "[]", "{}")),
    tie("list"),
    tie("record"),
  ),
  list: fc
    .tuple(space, fc.array(tie("value"), { maxLength: 4 }))
    .map(([gap, items]) => `[${gap}${items.join(`${gap},`)}]`),
  record: fc
    .tuple(space, fc.array(fc.tuple(keyText, tie("value")), { maxLength: 5 }))
    .map(([gap, members]) => `{${members.map(([key, value]) => `${gap}${key}${gap}:${gap}${value}`).join(",")}${gap}}`),
})).value;

/** A document, sometimes with a character taken out, put in or replaced. */
const damagedText = fc
  .tuple(documentText, fc.nat(), fc.constantFrom("", ",", '"', "\\", "}", "[", "0", "\u0001", "e"), fc.nat(1))
  .map(([text, offset, insert, cut]) => {
    const at = offset % (text.length + 1);
    return text.slice(0, at) + insert + text.slice(at + cut);
  })
  .map((text) => text.toWellFormed());

describe("a document without the refused features", () => {
  it("reads like JSON.parse reads it", () => {
    const value = fc.jsonValue({ noUnicodeString: false });
    fc.assert(
      fc.property(value, fc.constantFrom(undefined, 2), (json, indent) => {
        const text = JSON.stringify(json, null, indent);
        fc.pre(naiveOffences(text).size === 0);
        expect(parseStrictJsonText(text, { maxDepth: MAX_DEPTH })).toEqual(parseNatively(text));
        expect(parseStrictJson(utf8.encode(text), { maxDepth: MAX_DEPTH })).toEqual(parseNatively(text));
      }),
      { numRuns: 1000 },
    );
  });
});

describe("a value that was read", () => {
  it("can be written so that it is read again, large numbers included", () => {
    let large = 0;
    fc.assert(
      fc.property(documentText, (text) => {
        const verdict = judgeByGrammar(text);
        fc.pre(verdict.reason === undefined);
        const written = writeStrictJson(verdict.value as JsonValue);
        if (written !== JSON.stringify(verdict.value)) large += 1;
        // JSON has one zero; its sign is lost in writing.
        const expected = JSON.stringify(verdict.value);
        expect(JSON.stringify(parseStrictJsonText(written, { maxDepth: MAX_DEPTH }))).toBe(expected);
      }),
      { numRuns: 2000 },
    );
    expect(large).toBeGreaterThan(20);
  });
});

describe("any text", () => {
  it("is accepted exactly when JSON.parse accepts it and the naive judge finds no offence, else refused for a true reason", () => {
    const met = new Map<string, number>();
    fc.assert(
      fc.property(fc.oneof({ weight: 3, arbitrary: documentText }, { weight: 1, arbitrary: damagedText }), (text) => {
        const verdict = judge(() => parseStrictJson(utf8.encode(text), { maxDepth: MAX_DEPTH }));
        const fromText = judge(() => parseStrictJsonText(text, { maxDepth: MAX_DEPTH }));
        expect(fromText).toEqual(verdict);
        expect(judgeByGrammar(text)).toEqual(verdict);
        const outcome = verdict.reason ?? "accepted";
        met.set(outcome, (met.get(outcome) ?? 0) + 1);
        if (!parsesNatively(text)) {
          // The first offence in reading order may come before the place where the grammar breaks.
          expect(verdict.reason).toBeDefined();
          return;
        }
        const offences = naiveOffences(text);
        if (verdict.reason === undefined) {
          expect(offences).toEqual(new Set());
          expect(verdict.value).toEqual(parseNatively(text));
        } else {
          expect(offences).toContain(verdict.reason);
        }
      }),
      { numRuns: 6000 },
    );
    for (const outcome of [
      "accepted",
      "invalid_json",
      "duplicate_key",
      "lone_surrogate",
      "number_out_of_range",
      "too_deep",
    ]) {
      expect.soft(met.get(outcome) ?? 0, outcome).toBeGreaterThan(60);
    }
  });
});

describe("any bytes", () => {
  it("are accepted only as UTF-8 that JSON.parse accepts, with the same value", () => {
    const alphabet = fc.constantFrom(
      ...utf8.encode('{}[]:,"\\ue01-.au'),
      0x20,
      0x00,
      0xc3,
      0xa9,
      0xef,
      0xbb,
      0xbf,
      0xff,
    );
    const soup = fc.oneof(
      fc.uint8Array({ maxLength: 12 }),
      fc.array(alphabet, { maxLength: 10 }).map((bytes) => Uint8Array.from(bytes)),
    );
    const damaged = fc
      .tuple(documentText, fc.nat(), fc.nat(255))
      .map(([text, offset, byte]) =>
        utf8.encode(text).map((old, index, all) => (index === offset % all.length ? byte : old)),
      );
    const met = { accepted: 0, invalidUtf8: 0, other: 0 };
    fc.assert(
      fc.property(
        fc.oneof(
          soup,
          damaged,
          documentText.map((text) => utf8.encode(text)),
        ),
        (bytes) => {
          const verdict = judge(() => parseStrictJson(bytes, { maxDepth: MAX_DEPTH }));
          const isUtf8 = Buffer.from(Buffer.from(bytes).toString("utf8"), "utf8").equals(bytes);
          expect(verdict.reason === "invalid_utf8").toBe(!isUtf8);
          if (verdict.reason === undefined) {
            met.accepted += 1;
            expect(verdict.value).toEqual(parseNatively(Buffer.from(bytes).toString("utf8")));
          } else if (verdict.reason === "invalid_utf8") met.invalidUtf8 += 1;
          else met.other += 1;
        },
      ),
      { numRuns: 4000 },
    );
    expect(Math.min(met.accepted, met.invalidUtf8, met.other)).toBeGreaterThan(100);
  });
});

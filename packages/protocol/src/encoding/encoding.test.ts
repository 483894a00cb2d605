// Hex, base64 and UTF-8: round trips, agreement with Node, and that exactly one text stands for given bytes.
import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { decodeBase64, encodeBase64 } from "./base64.ts";
import { decodeBase64WithTable, encodeBase64WithTable } from "./base64-table.ts";
import { decodeBase64Url, encodeBase64Url } from "./base64url.ts";
import { decodeHex, encodeHex } from "./hex.ts";
import { encodeUtf8, utf8Length } from "./utf8.ts";

// Long enough that both ways of base64.ts are taken.
const bytes = fc.oneof(fc.uint8Array({ maxLength: 64 }), fc.uint8Array({ minLength: 380, maxLength: 1500 }));

const codecs = [
  { name: "base64", encode: encodeBase64, decode: decodeBase64 },
  { name: "base64 by table", encode: encodeBase64WithTable, decode: decodeBase64WithTable },
];

describe.each(codecs)("$name", ({ encode, decode }) => {
  it.each([
    ["", ""],
    ["f", "Zg=="],
    ["fo", "Zm8="],
    ["foo", "Zm9v"],
    ["foob", "Zm9vYg=="],
    ["fooba", "Zm9vYmE="],
    ["foobar", "Zm9vYmFy"],
  ])("of %j is %j, as RFC 4648 has it", (text, encoded) => {
    expect(encode(new TextEncoder().encode(text))).toBe(encoded);
    expect(decode(encoded)).toEqual(new TextEncoder().encode(text));
  });

  it("agrees with Node and comes back as plain bytes that share no memory", () => {
    fc.assert(
      fc.property(bytes, (value) => {
        const text = encode(value);
        expect(text).toBe(Buffer.from(value).toString("base64"));
        const back = decode(text);
        expect(back).toEqual(value);
        expect(back?.constructor).toBe(Uint8Array);
        expect(back?.buffer.byteLength).toBe(value.length);
      }),
    );
  });

  it("encodes what a view shows, not the memory under it", () => {
    expect(encode(Uint8Array.of(0, 1, 2, 3, 4, 5).subarray(2, 4))).toBe("AgM=");
  });

  // The same tails behind a long head go the other way through base64.ts.
  describe.each([
    ["short", ""],
    ["long", "QUJD".repeat(200)],
  ])("in a %s text", (_length, head) => {
    it.each([
      ["no padding", "Zg"],
      ["half the padding", "Zg="],
      ["too much padding", "Zg==="],
      ["padding that nothing needs", "Zm9v===="],
      ["padding alone", "===="],
      ["three of four padding", "Z==="],
      ["padding in the middle", "Zg==Zm9v"],
      ["padding between digits", "Z=g="],
      ["one digit", "Z"],
      ["stray bits before ==", "Zh=="],
      ["stray bits before =", "Zm9="],
      ["a space", "Zm 9"],
      ["a line feed at the end", "Zm9v\n"],
      ["line feeds that fill a group", "Zm9v\n\n\n\n"],
      ["a line feed inside a group", "Zm9\n"],
      ["the URL alphabet", "-_-_"],
      ["a character outside the alphabet", "Zm9!"],
      ["a character outside ASCII", "Zm9\u0129"],
      ["a wide character whose low byte is a digit", "Zm9\u4141"],
      ["a zero character", "Zm9\u0000"],
    ])("refuses %s", (_name, tail) => {
      expect(decode(head + tail)).toBeUndefined();
    });
  });

  it("accepts a text only if encoding gives it back", () => {
    const met = { accepted: 0, refused: 0 };
    const digit = fc.constantFrom(..."AZaz09+/Qg", "=", "-", " ");
    const damaged = fc.tuple(bytes, fc.nat(), digit).map(([value, offset, character]) => {
      const text = Buffer.from(value).toString("base64");
      const at = offset % (text.length + 1);
      return text.slice(0, at) + character + text.slice(at + 1);
    });
    const soup = fc.array(digit, { maxLength: 8 }).map((digits) => digits.join(""));
    fc.assert(
      fc.property(fc.oneof(damaged, soup), (text) => {
        const isCanonical = Buffer.from(text, "base64").toString("base64") === text;
        const decoded = decode(text);
        expect(decoded !== undefined).toBe(isCanonical);
        if (decoded !== undefined) expect(encode(decoded)).toBe(text);
        met[isCanonical ? "accepted" : "refused"] += 1;
      }),
      { numRuns: 1000 },
    );
    expect(Math.min(met.accepted, met.refused)).toBeGreaterThan(50);
  });
});

describe("base64 where there is no Buffer", () => {
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.resetModules();
  });

  it("answers the same", async () => {
    const value = Uint8Array.from({ length: 1000 }, (_, index) => (index * 7) % 256);
    const text = encodeBase64(value);
    vi.resetModules();
    vi.stubGlobal("Buffer", undefined);
    const portable = await import("./base64.ts");
    vi.unstubAllGlobals();
    expect(portable.encodeBase64).not.toBe(encodeBase64);
    const throughBuffer = vi.spyOn(Buffer, "from");
    const answers = [portable.encodeBase64(value), portable.decodeBase64(text), portable.decodeBase64(`${text}\n`)];
    const calls = throughBuffer.mock.calls.length;
    throughBuffer.mockRestore();
    expect(answers).toEqual([text, value, undefined]);
    expect(calls).toBe(0);
  });
});

describe("base64 for URLs", () => {
  it("agrees with Node and comes back", () => {
    fc.assert(
      fc.property(bytes, (value) => {
        expect(encodeBase64Url(value)).toBe(Buffer.from(value).toString("base64url"));
        expect(decodeBase64Url(encodeBase64Url(value))).toEqual(value);
      }),
    );
  });

  it.each(["A", "Zg==", "Zh", "Zm9", "+/+/", "Zm9v\n", "Zm 9", "Zm9vA"])("refuses %j", (text) => {
    expect(decodeBase64Url(text)).toBeUndefined();
  });
});

describe("hex", () => {
  it("agrees with Node and comes back", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (value) => {
        expect(encodeHex(value)).toBe(Buffer.from(value).toString("hex"));
        expect(decodeHex(encodeHex(value))).toEqual(value);
      }),
    );
  });

  it("has two digits for every byte", () => {
    expect(decodeHex(encodeHex(Uint8Array.from({ length: 256 }, (_, byte) => byte)))).toEqual(
      Uint8Array.from({ length: 256 }, (_, byte) => byte),
    );
    expect(encodeHex(Uint8Array.of(0, 15, 16, 255))).toBe("000f10ff");
  });

  it.each(["0", "abc", "AB", "aB", "0g", "0x00", " 00", "00 ", "0\n", "é0", "-1", "/0", ":0", "`0", "\u01300"])(
    "refuses %j",
    (text) => {
      expect(decodeHex(text)).toBeUndefined();
    },
  );
});

describe("UTF-8", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary", maxLength: 40 }),
    fc.string({ minLength: 3_000, maxLength: 5_000 }),
  );

  it("is what a TextEncoder writes, as plain bytes that no other text writes to", () => {
    const made: { bytes: Uint8Array; expected: Uint8Array }[] = [];
    fc.assert(
      fc.property(text, (value) => {
        const expected = new TextEncoder().encode(value);
        const encoded = encodeUtf8(value);
        expect(encoded).toEqual(expected);
        expect(utf8Length(value)).toBe(expected.length);
        expect(encoded.constructor).toBe(Uint8Array);
        made.push({ bytes: encoded, expected });
      }),
    );
    for (const { bytes: encoded, expected } of made) expect(encoded).toEqual(expected);
  });
});

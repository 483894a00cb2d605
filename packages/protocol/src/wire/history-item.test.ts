// Bodies as they are read back: text where the bytes are text, base64 where they are not or where they are sealed.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readBody } from "../messages/send-request.ts";
import { bodyFields, textOf } from "./history-item.ts";

const utf8 = (text: string) => new TextEncoder().encode(text);

describe("a body that is read back", () => {
  it("is text where its bytes are UTF-8", () => {
    expect(bodyFields(utf8("héllo 🚀\0"), false)).toEqual({ body: "héllo 🚀\0" });
    expect(bodyFields(new Uint8Array(), false)).toEqual({ body: "" });
  });

  it("keeps a byte order mark", () => {
    expect(bodyFields(utf8("\ufeffhello"), false)).toEqual({ body: "\ufeffhello" });
  });

  it.each([
    ["a stray byte", [0xff]],
    ["half a character", [0xc3]],
    ["a surrogate in UTF-8", [0xed, 0xa0, 0x80]],
    ["an overlong form", [0xc0, 0x80]],
    ["a code point beyond the last", [0xf4, 0x90, 0x80, 0x80]],
  ])("is base64 where it holds %s", (_what, bytes) => {
    expect(bodyFields(Uint8Array.from(bytes), false)).toEqual({ body_base64: Buffer.from(bytes).toString("base64") });
    expect(textOf(Uint8Array.from(bytes))).toBeUndefined();
  });

  it("is base64 where escaping would make a large text outgrow a frame, and text where it would not", () => {
    expect(bodyFields(utf8("\u0001".repeat(1_000_000)), false)).toHaveProperty("body_base64");
    expect(bodyFields(utf8("a".repeat(1_000_000)), false)).toHaveProperty("body");
  });

  it("is base64 where it is sealed, even if it happens to be text", () => {
    expect(bodyFields(utf8("abc"), true)).toEqual({ body_base64: "YWJj" });
  });

  it("is the same bytes again, for any bytes, in exactly one of the two fields", () => {
    const bytes = fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.string({ unit: "grapheme" }).map(utf8));
    let texts = 0;
    let binaries = 0;
    fc.assert(
      fc.property(bytes, fc.boolean(), (original, sealed) => {
        const fields: { body?: string; body_base64?: string } = bodyFields(original, sealed);
        if (fields.body === undefined) binaries += 1;
        else texts += 1;
        expect(readBody(fields.body, fields.body_base64, "body")).toEqual(original);
      }),
      { numRuns: 500 },
    );
    expect(texts).toBeGreaterThan(30);
    expect(binaries).toBeGreaterThan(30);
  });
});

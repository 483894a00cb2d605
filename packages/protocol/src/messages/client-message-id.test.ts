// Which id a send has: the published vectors, and random ids through every way of giving one.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createUlidGenerator } from "../ids/ids.ts";
import { chooseClientMessageId, isClientMessageId, parseIdempotencyKey } from "./client-message-id.ts";

interface Vectors {
  valid: string[];
  invalid: string[];
  headers: { name: string; header: string; id: string | null }[];
  choices: { name: string; header: string | null; body: string | null; id?: string | null; error?: string }[];
}

const vectors: Vectors = JSON.parse(
  readFileSync(new URL("../../vectors/client-message-ids.json", import.meta.url), "utf8"),
);

const refusal = (code: string) => expect.objectContaining({ name: "MeshError", code, status: 400 });
const anyCharacter = fc.oneof(fc.nat({ max: 0x100 }), fc.nat({ max: 0xffff })).map((code) => String.fromCharCode(code));
const printable = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code));
const anyId = fc.string({ unit: printable, minLength: 1, maxLength: 128 });
const quoted = (id: string) => `"${id.replaceAll(/["\\]/g, "\\$&")}"`;

describe("a client_message_id", () => {
  it.each(vectors.valid)("may be %j", (text) => {
    expect(isClientMessageId(text)).toBe(true);
  });

  it.each(vectors.invalid)("is never %j", (text) => {
    expect(isClientMessageId(text)).toBe(false);
  });

  it("is 1–128 printable ASCII characters without spaces, whatever text is tried", () => {
    let valid = 0;
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: anyCharacter, maxLength: 4 }),
          fc.string({ unit: printable, minLength: 120, maxLength: 136 }),
        ),
        (text) => {
          const codes = Array.from(text, (character) => character.codePointAt(0) ?? 0);
          const wanted = codes.length >= 1 && codes.length <= 128 && codes.every((code) => code > 0x20 && code < 0x7f);
          if (wanted) valid += 1;
          expect(isClientMessageId(text)).toBe(wanted);
        },
      ),
      { numRuns: 500 },
    );
    expect(valid).toBeGreaterThan(50);
  });

  it("that the daemon makes itself is a valid one", () => {
    const next = createUlidGenerator({ nowMs: () => 1, randomBytes: (length) => new Uint8Array(length) });
    expect(isClientMessageId(next())).toBe(true);
  });
});

describe("an Idempotency-Key header", () => {
  it.each(vectors.headers)("$name", ({ header, id }) => {
    if (id === null) expect(() => parseIdempotencyKey(header)).toThrow(refusal("invalid_client_message_id"));
    else expect(parseIdempotencyKey(header)).toBe(id);
  });

  it("can carry every id as a quoted string, and every id that starts without a quote bare", () => {
    let bare = 0;
    fc.assert(
      fc.property(anyId, (id) => {
        expect(parseIdempotencyKey(quoted(id))).toBe(id);
        if (id.startsWith('"')) return;
        bare += 1;
        expect(parseIdempotencyKey(id)).toBe(id);
      }),
      { numRuns: 500 },
    );
    expect(bare).toBeGreaterThan(100);
  });

  it("gives a valid id or is refused, whatever it holds", () => {
    const piece = fc.constantFrom('"', "\\", '\\"', "\\\\", "a", " ", ";");
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join("")),
        (header) => {
          try {
            expect(isClientMessageId(parseIdempotencyKey(header))).toBe(true);
          } catch (error) {
            expect(error).toEqual(refusal("invalid_client_message_id"));
          }
        },
      ),
      { numRuns: 1000 },
    );
  });
});

describe("the id of a send", () => {
  it.each(vectors.choices)("$name", ({ header, body, id, error }) => {
    const choose = () => chooseClientMessageId(header ?? undefined, body ?? undefined);
    if (error === undefined) expect(choose()).toBe(id ?? undefined);
    else expect(choose).toThrow(refusal(error));
  });

  it("is ambiguous exactly when header and body name different ids", () => {
    fc.assert(
      fc.property(anyId, anyId, fc.boolean(), (first, second, same) => {
        const body = same ? first : second;
        const choose = () => chooseClientMessageId(quoted(first), body);
        if (body === first) expect(choose()).toBe(first);
        else expect(choose).toThrow(refusal("idempotency_key_ambiguous"));
      }),
      { numRuns: 300 },
    );
  });
});

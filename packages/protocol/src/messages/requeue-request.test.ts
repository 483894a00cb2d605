// The reading and applying of a patch: what it names is replaced, what it does not name stays.
import { describe, expect, it } from "vitest";
import { applyPatch, type PayloadPatch, readPatch } from "./requeue-request.ts";

const utf8 = new TextEncoder();
const content = { body: utf8.encode("old"), priority: "low", canonicalMeta: '{"a":1}', replyToId: "m0" } as const;
const patched = (patch: PayloadPatch) => applyPatch(content, readPatch(patch));

describe("a patch", () => {
  it.each<[PayloadPatch, object]>([
    [{ message: "new" }, { body: utf8.encode("new") }],
    [{ message: "" }, { body: new Uint8Array() }],
    [{ message_base64: "AP8=" }, { body: Uint8Array.of(0, 255) }],
    [{ priority: "now" }, { priority: "now" }],
    [{ meta: { b: 2, a: 1 } }, { canonicalMeta: '{"a":1,"b":2}' }],
    [{ meta: {} }, { canonicalMeta: "" }],
    [{ meta: null }, { canonicalMeta: "" }],
    [{ reply_to_id: "m1" }, { replyToId: "m1" }],
    [{ reply_to_id: null }, { replyToId: undefined }],
    [
      { message: "x", priority: "next", meta: { c: 3 }, reply_to_id: "m2" },
      { body: utf8.encode("x"), priority: "next", canonicalMeta: '{"c":3}', replyToId: "m2" },
    ],
  ])("%j replaces what it names and keeps the rest", (patch, change) => {
    expect(patched(patch)).toEqual({ ...content, ...change });
  });

  it.each<[string, PayloadPatch, string]>([
    ["both spellings of a body", { message: "a", message_base64: "YQ==" }, "invalid_request"],
    ["base64 that is none", { message_base64: "a" }, "invalid_request"],
    ["half a character", { message: "\ud800" }, "lone_surrogate"],
    ["a meta that could be confused with another", { meta: { a: "\0" } }, "nul_in_field"],
    ["mentions out of order", { meta: { mentions: ["b", "a"] } }, "invalid_mentions"],
    ["a reference that is none", { reply_to_id: "a b" }, "invalid_request"],
  ])("with %s is refused like a send", (_, patch, code) => {
    expect(() => readPatch(patch)).toThrow(expect.objectContaining({ code }));
  });
});

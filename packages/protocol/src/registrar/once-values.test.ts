// What inputs and results become: one fingerprint per meaning, one text per result, and bounds on both.
import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../json/strict-json.ts";
import type { Sha256 } from "../messages/fingerprint.ts";
import { isOnceKey, onceLimits } from "./once-limits.ts";
import { onceInputsFingerprint, onceResultText } from "./once-values.ts";

const sha256: Sha256 = {
  bytes: (data) => createHash("sha256").update(data).digest(),
  hex: (data) => createHash("sha256").update(data).digest("hex"),
};
const nested = (depth: number): JsonValue => (depth === 0 ? 1 : [nested(depth - 1)]);

describe("inputs", () => {
  it("are hashed as canonical JSON, so that the order of keys means nothing", () => {
    const expected = createHash("sha256").update('{"a":[1,"ü"],"b":null}').digest("hex");
    expect(onceInputsFingerprint(sha256, { b: null, a: [1, "ü"] })).toBe(expected);
    expect(onceInputsFingerprint(sha256, ["make", "deploy"])).toBe(
      createHash("sha256").update('["make","deploy"]').digest("hex"),
    );
  });

  it("that differ have fingerprints that differ", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (left, right) => {
        const same = onceResultText(left as JsonValue) === onceResultText(right as JsonValue);
        const prints = [left, right].map((value) => onceInputsFingerprint(sha256, value as JsonValue));
        expect(prints[0] === prints[1]).toBe(same);
      }),
    );
  });

  it.each([[undefined], [Number.NaN], [new Date(0)], ["\ud800"], [{ a: undefined }]])("%s are no JSON", (value) => {
    const refused = expect.objectContaining({ code: "invalid_request", details: { field: "inputs" } });
    expect(() => onceInputsFingerprint(sha256, value as never)).toThrow(refused);
  });
});

describe("a result", () => {
  it("may have so many bytes and no more, counted in UTF-8", () => {
    const room = onceLimits.resultBytes - 2;
    expect(onceResultText("x".repeat(room))).toHaveLength(onceLimits.resultBytes);
    const refused = expect.objectContaining({
      code: "payload_too_large",
      details: { field: "result", limit_bytes: 65_536 },
    });
    expect(() => onceResultText("x".repeat(room + 1))).toThrow(refused);
    expect(() => onceResultText("ü".repeat(room / 2 + 1))).toThrow(refused);
  });

  it("may be so deep and no deeper, as inputs may", () => {
    expect(onceResultText(nested(onceLimits.valueDepth))).toContain("[1]");
    const refused = expect.objectContaining({ code: "too_deep" });
    expect(() => onceResultText(nested(onceLimits.valueDepth + 1))).toThrow(refused);
    expect(() => onceInputsFingerprint(sha256, nested(onceLimits.valueDepth + 1))).toThrow(refused);
  });
});

describe("a key", () => {
  it.each(["a", "deploy:2024-05/eu", "...", ".x", "~", "x".repeat(128)])("may be %s", (key) => {
    expect(isOnceKey(key)).toBe(true);
  });

  it.each(["", ".", "..", "two words", "ü", "a\n", "x".repeat(129)])("is not %j", (key) => {
    expect(isOnceKey(key)).toBe(false);
  });
});

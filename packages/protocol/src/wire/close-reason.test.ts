import { expect, test } from "vitest";
import { utf8Length } from "../encoding/utf8.ts";
import { closeReason } from "./close-reason.ts";

test.each(["", "short", "x".repeat(123), "é".repeat(61)])("a reason that fits stays as it is: %j", (text) => {
  expect(closeReason(text)).toBe(text);
});

test.each(["x".repeat(124), "é".repeat(100), "🙂".repeat(100), "x🙂".repeat(100)])(
  "a longer one is cut behind a whole character: %j",
  (text) => {
    const cut = closeReason(text);
    expect(text.startsWith(cut)).toBe(true);
    expect(cut.isWellFormed()).toBe(true);
    expect(utf8Length(cut)).toBeLessThanOrEqual(123);
    expect(utf8Length(cut)).toBeGreaterThan(119);
  },
);

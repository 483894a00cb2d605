import { expect, test } from "vitest";
import { memberOrKey, messageId, publicKey } from "./argument-forms.ts";

const key = "0123456789abcdef".repeat(4);

test("what is well formed is taken, and a member's name without the sign of addresses", () => {
  expect(messageId("build-42/a")).toBe("build-42/a");
  expect(memberOrKey("bob")).toBe("bob");
  expect(memberOrKey("@bob")).toBe("bob");
  expect(memberOrKey(key)).toBe(key);
  expect(publicKey(key)).toBe(key);
});

test.each([
  [messageId, "", "printable ASCII"],
  [messageId, "a b", "printable ASCII"],
  [messageId, "x".repeat(129), "1–128"],
  [memberOrKey, "self", "1–64 letters"],
  [memberOrKey, "b%", "64 lower-case hex digits"],
  [memberOrKey, key.toUpperCase(), "lower-case"],
  [publicKey, "3b6a", "64 lower-case hex digits"],
  [publicKey, key.toUpperCase(), "64 lower-case hex digits"],
])("%o refuses %j and says what is accepted", (form, text, words) => {
  expect(() => form(text)).toThrow(words);
});

import { expect, test } from "vitest";
import { memberOrKey, messageId, publicKey, queueName, topicName } from "./arguments.ts";

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

test("a topic may be named as one sends to it", () => {
  expect(["builds", "#builds", "topic:builds"].map(topicName)).toEqual(["builds", "builds", "builds"]);
});

test("so may a queue, and nothing else is taken away", () => {
  expect(["jobs", "queue:jobs"].map(queueName)).toEqual(["jobs", "jobs"]);
  expect([topicName("##builds"), topicName("@self"), queueName("#jobs")]).toEqual(["#builds", "@self", "#jobs"]);
});

// The bound on how many values a request holds, judged before it is parsed.
import { expect, test } from "vitest";
import { limits } from "../messages/limits.ts";
import { refuseManyValues } from "./value-count.ts";

const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
const wide = (keys: number) => Object.fromEntries(Array.from({ length: keys }, (_, n) => [`k${n}`, 0]));

test.each<[string, unknown, boolean]>([
  ["as many members as are allowed", wide(limits.jsonMembers), true],
  ["one member more", wide(limits.jsonMembers + 1), false],
  ["as many items as are allowed", Array(limits.jsonValues + 1).fill(0), true],
  ["one item more", Array(limits.jsonValues + 2).fill(0), false],
  ["commas and colons in texts, behind escapes and quotes", ['\\":,'.repeat(300_000), ",:".repeat(300_000)], true],
  ["a large text", ["x".repeat(4_000_000)], true],
])("%s", (_, value, isAdmitted) => {
  const refusal = refuseManyValues(bytesOf(value));
  expect(refusal === undefined).toBe(isAdmitted);
  if (refusal !== undefined) {
    expect(refusal).toMatchObject({
      code: "payload_too_large",
      details: { limit_members: limits.jsonMembers, limit_values: limits.jsonValues },
    });
  }
});

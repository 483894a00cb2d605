import { expect, test } from "vitest";
import { namesAmong, shortenKeys, showMember } from "./members.ts";

const [alice, bob, other, unknown] = ["a1", "b2", "c3", "d4"].map((pair) => pair.repeat(32)) as [
  string,
  string,
  string,
  string,
];

test("a member is shown by name, and by the key as well where the name is not its alone, or alone where there is none", () => {
  const nameOf = namesAmong([
    { pubkey: alice, name: "alice" },
    { pubkey: bob, name: "bob" },
    { pubkey: other, name: "BOB" },
  ]);
  expect([alice, bob, other, unknown].map(nameOf)).toEqual([
    "alice",
    "bob (b2b2b2b2b2b2)",
    "BOB (c3c3c3c3c3c3)",
    "(d4d4d4d4d4d4)",
  ]);
  expect(showMember(null, alice)).toBe("(a1a1a1a1a1a1)");
});

test("a key inside a text is cut to its beginning, and nothing else is", () => {
  expect(shortenKeys(`dm:${alice}`)).toBe("dm:a1a1a1a1a1a1…");
  expect(shortenKeys("@bob #a1a1a1a1a1a1a1a1")).toBe("@bob #a1a1a1a1a1a1a1a1");
});

// One known fault a day, chosen by the seed, planted in a copy and caught by the tests that are there anyway. All of
// them: `npm run known-bad`.
import { join } from "node:path";
import { expect, it } from "vitest";
import { createRandom, seedOfTheDay } from "../tests/support/seed.ts";
import { choiceFor, createBadCopy } from "./known-bad/bad-copy.ts";
import { knownBad } from "./known-bad/faults.ts";

it("catches the fault of the day, and nothing in the unbroken copy", () => {
  const fault = createRandom(seedOfTheDay()).pick(knownBad);
  process.stdout.write(`known fault of the day: ${fault.name}\n`);
  const copy = createBadCopy(join(import.meta.dirname, ".."));
  try {
    const bad = copy.run(fault.edits, choiceFor([fault]), true);
    expect(bad.failed, bad.output).not.toHaveLength(0);
    const sound = copy.run([], choiceFor([fault]), false);
    expect([...sound.failed, ...sound.broken], sound.output).toHaveLength(0);
    expect(sound.passed).toBeGreaterThan(0);
  } finally {
    copy.remove();
  }
});

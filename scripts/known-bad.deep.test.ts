// One known fault a day, chosen by the seed, planted in a copy and caught by the tests that are there anyway. All of
// them, and the same tests on the unbroken copy: `npm run known-bad`.
import { join } from "node:path";
import { expect, it } from "vitest";
import { createRandom, seedOfTheDay } from "../tests/support/seed.ts";
import { createBadCopy, filesOf } from "./known-bad/bad-copy.ts";
import { knownBad } from "./known-bad/faults.ts";

it("catches the fault of the day", () => {
  const fault = createRandom(seedOfTheDay()).pick(knownBad);
  process.stdout.write(`known fault of the day: ${fault.name}\n`);
  const copy = createBadCopy(join(import.meta.dirname, ".."));
  try {
    const bad = copy.run(fault.edits, filesOf([fault]), true);
    expect(bad.failed, bad.output).not.toHaveLength(0);
  } finally {
    copy.remove();
  }
});

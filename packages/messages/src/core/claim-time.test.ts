import { expect, test } from "vitest";
import { isOutdated } from "./claim-time.ts";

test.each([
  ["at once", 0, false],
  ["after five minutes", 300_000, false],
  ["later", 300_001, true],
  ["after a week's sleep", 7 * 86_400_000, true],
  ["by a clock that was set back", -3_600_000, false],
])("a claim %s", (_, passedMs, outdated) => {
  expect(isOutdated(1_700_000_000_000, 1_700_000_000_000 + passedMs)).toBe(outdated);
});

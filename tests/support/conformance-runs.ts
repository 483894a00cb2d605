// Runs of the conformance kit inside a test: what was missed, what was skipped, how much passed.
import { areas } from "@claudemesh/conformance/areas";
import { readOptions } from "@claudemesh/conformance/options";
import { chooseScenarios, runArea } from "@claudemesh/conformance/run";
import type { BrokerTarget } from "./conformance-targets.ts";

export function areaNamed(name: string) {
  const area = areas.find((each) => each.name === name);
  if (area === undefined) throw new Error(`there is no area ${name}`);
  return area;
}

export async function tryArea(
  name: string,
  given: Record<string, readonly string[]>,
  only: readonly string[] = [],
  timeoutMs = 120_000,
) {
  const area = areaNamed(name);
  const values = readOptions(area.options, given);
  const results = await runArea(area, { values, chosen: chooseScenarios(area, only), timeoutMs });
  const missed = results.flatMap(({ id, miss }) => (miss === undefined ? [] : [{ id, ...miss }]));
  const skipped = results.flatMap(({ id, outcome }) => (outcome === "skipped" ? [id] : []));
  return { missed, skipped, passed: results.filter(({ outcome }) => outcome === "passed").length };
}

/** All of spaces, in a mesh that the kit makes. */
export function trySpaces({ url, adminToken }: BrokerTarget, budget: number) {
  return tryArea("spaces", { url: [url], "admin-token": [adminToken], budget: [String(budget)] });
}

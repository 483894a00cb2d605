// What every SpacesStore owes the services above it, as one suite over a harness. Each back end's test file supplies the
// harness and adds what is particular to it.
import { afterEach, beforeEach, describe } from "vitest";
import { type SpacesHarness, World } from "./conformance-world.ts";
import { describeAnomalies } from "./suites/anomalies/conformance.ts";
import { describeBranches } from "./suites/branches/conformance.ts";
import { describeCommits } from "./suites/commits/conformance.ts";
import { describePending } from "./suites/pending/conformance.ts";
import { describeReading } from "./suites/reading/conformance.ts";
import { describeRules } from "./suites/rules/conformance.ts";
import { describeSessions } from "./suites/sessions/conformance.ts";
import { describeWork } from "./suites/work/conformance.ts";

export function describeSpacesConformance(harness: SpacesHarness): void {
  const withWorld = (name: string, body: (world: () => World) => void) =>
    describe(name, () => {
      let world: World;
      beforeEach(async () => {
        world = await World.start(harness);
      });
      afterEach(() => world.close());
      body(() => world);
    });

  withWorld("sessions", describeSessions);
  withWorld("commits", describeCommits);
  withWorld("the work of commits", describeWork);
  withWorld("pending reads", describePending);
  withWorld("branches", describeBranches);
  withWorld("reading", describeReading);
  withWorld("anomalies", describeAnomalies);
  withWorld("rules between rows", describeRules);
}

// What every SpacesStore owes the services above it, as one suite over a harness. Each back end's test file supplies the
// harness and adds what is particular to it.
import { afterEach, beforeEach, describe } from "vitest";
import { describeAnomalies } from "./anomalies.suite.ts";
import { describeBranches } from "./branches.suite.ts";
import { describeCommits } from "./commits.suite.ts";
import { describePending } from "./pending.suite.ts";
import { describeReading } from "./reading.suite.ts";
import { describeRules } from "./rules.suite.ts";
import { describeSessions } from "./sessions.suite.ts";
import { describeWork } from "./work.suite.ts";
import { type SpacesHarness, World } from "./world.ts";

export function describeSpacesSuite(harness: SpacesHarness): void {
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

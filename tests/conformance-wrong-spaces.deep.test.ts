// The conformance kit must catch a broker whose spaces or registrar break one rule, by a scenario of the section that
// has the rule.
import { afterAll, beforeAll } from "vitest";
import { describeCatching, inFrontOf } from "./support/conformance-catches.ts";
import { type BrokerTarget, startBrokerTarget } from "./support/conformance-targets.ts";
import { wrongRegistrars } from "./support/wrong-registrars.ts";
import { wrongSpaces } from "./support/wrong-spaces.ts";

let broker: BrokerTarget;

beforeAll(async () => {
  broker = await startBrokerTarget();
});

afterAll(() => broker.stop());

describeCatching(
  "spaces",
  wrongSpaces,
  inFrontOf(() => broker),
);
describeCatching(
  "registrar",
  wrongRegistrars,
  inFrontOf(() => broker),
);

// The conformance kit must catch a broker that breaks one rule, by a scenario of the section that has the rule.
import { afterAll, beforeAll } from "vitest";
import { describeCatching, inFrontOf } from "./support/conformance-catches.ts";
import { type BrokerTarget, startBrokerTarget } from "./support/conformance-targets.ts";
import { wrongBrokers } from "./support/wrong-brokers.ts";

let broker: BrokerTarget;

beforeAll(async () => {
  broker = await startBrokerTarget();
});

afterAll(() => broker.stop());

describeCatching(
  "broker",
  wrongBrokers,
  inFrontOf(
    () => broker,
    () => ({ budget: [String(broker.budget)] }),
  ),
);

// The conformance kit must catch a broker that breaks one rule, by a scenario of the section that has the rule.
import { areas } from "@claudemesh/conformance/areas";
import { readOptions } from "@claudemesh/conformance/options";
import { chooseScenarios, runArea } from "@claudemesh/conformance/run";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Breach, startBreachingProxy } from "./support/breaching-proxy.ts";
import { type BrokerTarget, startBrokerTarget } from "./support/conformance-targets.ts";
import { wrongBrokers } from "./support/wrong-brokers.ts";

let broker: BrokerTarget;

beforeAll(async () => {
  broker = await startBrokerTarget();
});

afterAll(() => broker.stop());

const [brokerArea] = areas;
const sections = [...new Set(brokerArea?.scenarios.map(({ section }) => section))];

/** The ids of what failed, with a proxy in front that keeps or breaks a rule. */
async function findMisses(breach: Breach, only: readonly string[]): Promise<readonly string[]> {
  if (brokerArea === undefined) throw new Error("the kit has no areas");
  const proxy = await startBreachingProxy(() => broker.url, breach);
  try {
    const { adminToken, budget } = broker;
    const given = { url: [proxy.url], "admin-token": [adminToken], budget: [String(budget)] };
    const values = readOptions(brokerArea.options, given);
    const results = await runArea(brokerArea, { values, chosen: chooseScenarios(brokerArea, only), timeoutMs: 60_000 });
    return results.flatMap(({ id, outcome }) => (outcome === "failed" ? [id] : []));
  } finally {
    await proxy.stop();
  }
}

describe("the conformance kit", () => {
  it("finds nothing wrong with a proxy that breaks no rule", async () => {
    const caught = [...new Set(wrongBrokers.flatMap(({ caughtBy }) => caughtBy))];
    expect(await findMisses({}, caught)).toEqual([]);
  });

  it.each(wrongBrokers)("$section catches: $wrong", async ({ caughtBy, breach }) => {
    expect([...(await findMisses(breach(), caughtBy))].sort()).toEqual([...caughtBy].sort());
  });

  it("was tried with a wrong broker for every section that it has", () => {
    expect([...new Set(wrongBrokers.map(({ section }) => section))].sort()).toEqual(sections.sort());
    for (const { section, caughtBy } of wrongBrokers) {
      for (const id of caughtBy) expect(id.startsWith(`${section}-`), id).toBe(true);
    }
  });
});

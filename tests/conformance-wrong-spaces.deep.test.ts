// The conformance kit must catch a broker whose spaces or registrar break one rule, by a scenario of the section that
// has the rule.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Breach, startBreachingProxy } from "./support/breaching-proxy.ts";
import { areaNamed, tryArea } from "./support/conformance-runs.ts";
import { type BrokerTarget, startBrokerTarget } from "./support/conformance-targets.ts";
import { wrongRegistrars } from "./support/wrong-registrars.ts";
import { wrongSpaces } from "./support/wrong-spaces.ts";

let broker: BrokerTarget;

beforeAll(async () => {
  broker = await startBrokerTarget();
});

afterAll(() => broker.stop());

describe.each([
  { name: "spaces", wrong: wrongSpaces },
  { name: "registrar", wrong: wrongRegistrars },
])("the conformance kit for $name", ({ name, wrong }) => {
  /** The ids of what failed, with a proxy in front that keeps or breaks a rule. */
  async function findMisses(breach: Breach, only: readonly string[]): Promise<readonly string[]> {
    const proxy = await startBreachingProxy(() => broker.url, breach);
    try {
      const given = { url: [proxy.url], "admin-token": [broker.adminToken] };
      return (await tryArea(name, given, only, 60_000)).missed.map(({ id }) => id);
    } finally {
      await proxy.stop();
    }
  }

  it("finds nothing wrong with a proxy that breaks no rule", async () => {
    const caught = [...new Set(wrong.flatMap(({ caughtBy }) => caughtBy))];
    expect(await findMisses({}, caught)).toEqual([]);
  });

  it.each(wrong)("$section catches: $wrong", async ({ caughtBy, breach }) => {
    expect([...(await findMisses(breach(), caughtBy))].sort()).toEqual([...caughtBy].sort());
  });

  it("was tried with a wrong server for every section that it has", () => {
    const sections = [...new Set(areaNamed(name).scenarios.map(({ section }) => section))];
    expect([...new Set(wrong.map(({ section }) => section))].sort()).toEqual(sections.sort());
    for (const { section, caughtBy } of wrong) {
      for (const id of caughtBy) expect(id.startsWith(`${section}-`), id).toBe(true);
    }
  });
});

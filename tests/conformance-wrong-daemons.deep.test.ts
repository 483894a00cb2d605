// The conformance kit must catch a daemon that breaks one rule, by a scenario of the section that has the rule.
import { areas } from "@claudemesh/conformance/areas";
import { readOptions } from "@claudemesh/conformance/options";
import { chooseScenarios, runArea } from "@claudemesh/conformance/run";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Breach, startBreachingProxy } from "./support/breaching-proxy.ts";
import {
  type BrokerTarget,
  type DaemonTarget,
  findFreePort,
  startBrokerTarget,
  startDaemonTarget,
} from "./support/conformance-targets.ts";
import { wrongDaemons } from "./support/wrong-daemons.ts";

let broker: BrokerTarget;
let daemon: DaemonTarget;
/** Where the daemon looks for its broker, and where the kit passes on to the real one. */
let linkPort: number;
let kitPort: number;

beforeAll(async () => {
  broker = await startBrokerTarget();
  linkPort = await findFreePort();
  kitPort = await findFreePort();
  daemon = await startDaemonTarget(broker, `ws://127.0.0.1:${linkPort}`);
});

afterAll(async () => {
  await daemon.stop();
  await broker.stop();
});

const [, daemonArea] = areas;
const wrong = wrongDaemons(() => daemon.token());

/** The ids of what failed, with proxies before and behind the daemon that keep or break a rule. */
async function findMisses(breach: Breach, only: readonly string[]): Promise<readonly string[]> {
  if (daemonArea === undefined) throw new Error("the kit has no such area");
  const front = await startBreachingProxy(() => daemon.url(), breach);
  const link = await startBreachingProxy(() => `http://127.0.0.1:${kitPort}`, breach, linkPort);
  try {
    const values = readOptions(daemonArea.options, {
      url: [front.url],
      token: [daemon.token()],
      broker: [broker.url],
      between: [`127.0.0.1:${kitPort}`],
      "peer-token": [daemon.peerToken],
      restart: ["true"],
    });
    const results = await runArea(daemonArea, { values, chosen: chooseScenarios(daemonArea, only), timeoutMs: 60_000 });
    return results.flatMap(({ id, outcome }) => (outcome === "failed" ? [id] : []));
  } finally {
    await link.stop();
    await front.stop();
  }
}

describe("the conformance kit", () => {
  it("finds nothing wrong with proxies that break no rule", async () => {
    const caught = [...new Set(wrong.flatMap(({ caughtBy }) => caughtBy))];
    expect(await findMisses({}, caught)).toEqual([]);
  });

  it.each(wrong)("$section catches: $wrong", async ({ caughtBy, breach }) => {
    expect([...(await findMisses(breach(), caughtBy))].sort()).toEqual([...caughtBy].sort());
  });

  it("was tried with a wrong daemon for every section that it has", () => {
    const sections = [...new Set(daemonArea?.scenarios.map(({ section }) => section))];
    expect([...new Set(wrong.map(({ section }) => section))].sort()).toEqual(sections.sort());
    for (const { section, caughtBy } of wrong) {
      for (const id of caughtBy) expect(id.startsWith(`${section}-`), id).toBe(true);
    }
  });
});

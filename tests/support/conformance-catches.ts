// The conformance kit held against wrong servers: of the scenarios named for each, all fail, and none fails without it.
import { describe, expect, it } from "vitest";
import { type Breach, startBreachingProxy } from "./breaching-proxy.ts";
import { areaNamed, tryArea } from "./conformance-runs.ts";
import type { BrokerTarget } from "./conformance-targets.ts";
import type { WrongServer } from "./wrong-server.ts";

type Given = Record<string, readonly string[]>;

/** `arrange` puts proxies with this breach before or behind the server, and says what the kit is given then. */
export function describeCatching(
  name: string,
  wrong: readonly WrongServer[],
  arrange: (breach: Breach) => Promise<{ readonly given: Given; readonly stop: () => Promise<void> }>,
): void {
  /** The ids of what failed. */
  async function findMisses(breach: Breach, only: readonly string[]): Promise<string[]> {
    const { given, stop } = await arrange(breach);
    try {
      return (await tryArea(name, given, only, 60_000)).missed.map(({ id }) => id);
    } finally {
      await stop();
    }
  }

  describe(`the conformance kit for ${name}`, () => {
    it("finds nothing wrong behind a proxy that breaks no rule", async () => {
      const caught = [...new Set(wrong.flatMap(({ caughtBy }) => caughtBy))];
      expect(await findMisses({}, caught)).toEqual([]);
    });

    it.each(wrong)("$section catches: $wrong", async ({ caughtBy, breach }) => {
      expect((await findMisses(breach(), caughtBy)).sort()).toEqual([...caughtBy].sort());
    });

    it("was tried with a wrong server for every section that it has", () => {
      const sections = [...new Set(areaNamed(name).scenarios.map(({ section }) => section))];
      expect([...new Set(wrong.map(({ section }) => section))].sort()).toEqual(sections.sort());
      for (const { section, caughtBy } of wrong) {
        for (const id of caughtBy) expect(id.startsWith(`${section}-`), id).toBe(true);
      }
    });
  });
}

/** A proxy before the broker. */
export const inFrontOf = (broker: () => BrokerTarget, more: () => Given = () => ({})) => {
  return async (breach: Breach) => {
    const { url, stop } = await startBreachingProxy(() => broker().url, breach);
    return { given: { url: [url], "admin-token": [broker().adminToken], ...more() }, stop };
  };
};

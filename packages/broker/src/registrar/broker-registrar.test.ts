// What a broker does for the registrar beside requests: it finishes what was left unverified, and sums up its audit.
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { type BrokerRegistrar, openRegistrar } from "./broker-registrar.ts";

type Store = Parameters<typeof openRegistrar>[0]["store"];

const atMs = 1_700_000_000_000;
const idAt = (ms: number) =>
  `${ms
    .toString(16)
    .padStart(12, "0")
    .replace(/^(.{8})/, "$1-")}-7000-8000-000000000000`;

/** A store with these registrations unverified, which tells what was asked of it. */
function storeWith(unverified: { registrationId: string; logicalRequestKey: string }[]) {
  const looked: string[] = [];
  const found: string[] = [];
  const summaries: number[] = [];
  const facts = { has: () => true, [Symbol.iterator]: () => [][Symbol.iterator]() };
  const store = {
    inspect: async () => ({ store: "sqlite", facts, notes: [] }),
    requests: {
      unverified: async (sinceId: string) => {
        looked.push(sinceId);
        return unverified.map((each) => ({ meshId: "m", ...each }));
      },
      find: async (_meshId: string, key: string) => {
        found.push(key);
        return undefined;
      },
    },
    audit: {
      summarise: async (nowMs: number) => {
        summaries.push(nowMs);
        return 0;
      },
    },
    attempts: {},
    approvals: {},
  } as unknown as Store;
  return { store, unverified, looked, found, summaries };
}

const open = (store: Store, nowMs = () => atMs): Promise<BrokerRegistrar> =>
  openRegistrar({
    store,
    config: { registrarVerifier: undefined },
    nowMs,
    nextId: () => "id",
    metrics: { registrarOpen: () => undefined } as never,
    log: pino({ level: "silent" }),
  });

describe("a broker's registrar", () => {
  test("looks at everything that is unverified before it opens", async () => {
    const { store, looked, found } = storeWith([{ registrationId: idAt(atMs), logicalRequestKey: "just now" }]);
    await open(store);
    expect(looked).toEqual([""]);
    expect(found).toEqual(["just now"]);
  });

  test("later looks at the last hour alone, and leaves to a request what it is at work on", async () => {
    const left = storeWith([
      { registrationId: idAt(atMs - 60_000), logicalRequestKey: "left behind" },
      { registrationId: idAt(atMs - 1_000), logicalRequestKey: "under way" },
    ]);
    const registrar = await open(left.store);
    left.found.length = 0;
    expect(await registrar.tidyUp()).toBe(false);
    expect(left.found).toEqual(["left behind"]);
    expect(left.looked.at(-1)?.slice(0, 13)).toBe(idAt(atMs - 3_600_000).slice(0, 13));
    expect(left.summaries).toEqual([atMs]);
  });

  test("does not wait for a clock that was set back to come to where it was", async () => {
    const left = storeWith([]);
    const registrar = await open(left.store);
    left.unverified.push({ registrationId: idAt(atMs + 600_000), logicalRequestKey: "from before" });
    await registrar.tidyUp();
    expect(left.found).toEqual(["from before"]);
  });

  test("goes on where it looked last, however long ago that was, and comes back to what is left without a verdict", async () => {
    let now = atMs;
    const left = storeWith([]);
    const registrar = await open(left.store, () => now);
    now += 5 * 3_600_000;
    left.unverified.push({ registrationId: idAt(now - 1_000), logicalRequestKey: "under way" });
    await registrar.tidyUp();
    expect(left.looked.at(-1)?.slice(0, 13)).toBe(idAt(atMs - 3_600_000).slice(0, 13));
    now += 5 * 3_600_000;
    await registrar.tidyUp();
    expect(left.looked.at(-1)?.slice(0, 13)).toBe(idAt(atMs + 4 * 3_600_000 - 1_000).slice(0, 13));
  });
});

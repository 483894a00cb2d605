// A budget in bytes: what it lets pass, what it counts, and what other brokers and a restart know of it.
import { beforeEach, describe, expect, test } from "vitest";
import type { RateLimit } from "../core/rate-limit.ts";
import type { ByteLedger } from "../ports/byte-ledger.ts";
import { ByteBudget, type TakenBytes } from "./byte-budget.ts";

const rate: RateLimit = { limit: 6_400, windowSeconds: 60 };
let nowMs: number;
let sums: Map<string, number>;
let asked: number;
let isAway: boolean;
let failures: unknown[];

beforeEach(() => {
  nowMs = 1_699_999_990_000;
  sums = new Map();
  asked = 0;
  isAway = false;
  failures = [];
});

const ledger: ByteLedger = {
  add: async (meshId, windowStartMs, _, bytes) => {
    asked += 1;
    if (isAway) throw new Error("away");
    const key = `${meshId}/${windowStartMs}`;
    sums.set(key, (sums.get(key) ?? 0) + bytes);
    return sums.get(key) ?? 0;
  },
};

const start = (rateOf?: (meshId: string) => RateLimit | undefined) =>
  new ByteBudget({ ledger, rate, rateOf, nowMs: () => nowMs, onFailure: (error) => failures.push(error) });

async function spend(budget: ByteBudget, bytes: number, isCounted = true, mesh = "acme"): Promise<TakenBytes["type"]> {
  const taken = await budget.take(mesh, bytes);
  if (taken.type === "taken") taken.settle(isCounted);
  return taken.type;
}

/** Waits until every report has been answered. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("a budget in bytes", () => {
  test("lets pass what fits, and says when the next window begins", async () => {
    const budget = start();
    expect(await spend(budget, 6_000)).toBe("taken");
    expect(await budget.take("acme", 401)).toEqual({ type: "denied", retryAfterSeconds: 50 });
    expect(await spend(budget, 400)).toBe("taken");
    expect(await spend(budget, 1, true, "other")).toBe("taken");
    nowMs += 50_000;
    expect(await spend(budget, 6_000)).toBe("taken");
  });

  test("gives back what did not count, and holds what is not decided yet", async () => {
    const budget = start();
    const open = await budget.take("acme", 6_000);
    expect(await spend(budget, 500)).toBe("denied");
    if (open.type === "taken") open.settle(false);
    expect(await spend(budget, 6_400, false)).toBe("taken");
    expect(await spend(budget, 6_400)).toBe("taken");
    expect(await spend(budget, 1)).toBe("denied");
  });

  test("lets something larger than the whole budget pass in a window of its own, for it never would otherwise", async () => {
    const budget = start();
    expect(await spend(budget, 9_000)).toBe("taken");
    expect(await spend(budget, 1)).toBe("denied");
  });

  test("asks the ledger once, and then for each sixty-fourth of the limit, not for each call", async () => {
    const budget = start();
    for (let n = 0; n < 640; n += 1) {
      expect(await spend(budget, 10)).toBe("taken");
      if (n % 10 === 9) await settled();
    }
    expect(await spend(budget, 10)).toBe("denied");
    expect(asked).toBeGreaterThan(32);
    expect(asked).toBeLessThanOrEqual(65);
    expect([...sums.values()]).toEqual([6_400]);
  });

  test("is known to a broker that starts again, and to one beside it, but for the last part of each", async () => {
    const first = start();
    await spend(first, 6_000);
    await settled();
    const again = start();
    expect(await spend(again, 500)).toBe("denied");
    expect(await spend(again, 300)).toBe("taken");
    await settled();
    expect(await spend(first, 300)).toBe("taken");
    await settled();
    expect(await spend(first, 1)).toBe("denied");
  });

  test("goes on with what this process knows itself while the ledger is away", async () => {
    isAway = true;
    const budget = start();
    expect(await spend(budget, 6_000)).toBe("taken");
    await settled();
    expect(await spend(budget, 500)).toBe("denied");
    expect(failures.length).toBeGreaterThan(0);
  });

  test("is the owner's where the owner has chosen one, from the next call on", async () => {
    let chosen: RateLimit | undefined;
    const budget = start((meshId) => (meshId === "acme" ? chosen : undefined));
    expect(await spend(budget, 6_000)).toBe("taken");
    chosen = { limit: 10_000, windowSeconds: 60 };
    expect(await spend(budget, 4_000)).toBe("taken");
    expect(await spend(budget, 1)).toBe("denied");
    expect(await spend(budget, 6_400, true, "other")).toBe("taken");
  });
});

// The sweep for deliveries whose signal was lost: whom it asks about, whom it wakes, and that it never piles up.
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { startDeliverySweep } from "./delivery-sweep.ts";
import type { Recipient } from "./shared-connections.ts";

const recipient = (pubkey: string): Recipient => ({ meshId: "mesh-1", pubkey });

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe("the delivery sweep", () => {
  test("asks at intervals, a bounded number at a time, and wakes those who have something waiting", async () => {
    const all = Array.from({ length: 1_200 }, (_, n) => recipient(`member-${n}`));
    const asked: number[] = [];
    const woken: string[] = [];
    const sweep = startDeliverySweep({
      intervalMs: 5_000,
      recipients: () => all,
      findWaiting: async (some) => {
        asked.push(some.length);
        return some.filter(({ pubkey }) => pubkey === "member-3" || pubkey === "member-1100");
      },
      wake: ({ pubkey }) => woken.push(pubkey),
      onFailure: (error) => expect.unreachable(String(error)),
    });
    await vi.advanceTimersByTimeAsync(4_999);
    expect(asked).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    await turn();
    expect(asked).toEqual([500, 500, 200]);
    expect(woken).toEqual(["member-3", "member-1100"]);
    sweep.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked).toHaveLength(3);
  });

  test("does not begin again while one is under way, and goes on after a failure", async () => {
    const gate = Promise.withResolvers<Recipient[]>();
    const failures: unknown[] = [];
    let asked = 0;
    const sweep = startDeliverySweep({
      intervalMs: 1_000,
      recipients: () => [recipient("bob")],
      findWaiting: () => {
        asked += 1;
        return asked === 1 ? gate.promise : Promise.resolve([]);
      },
      wake: () => undefined,
      onFailure: (error) => failures.push(error),
    });
    await vi.advanceTimersByTimeAsync(3_000);
    expect(asked).toBe(1);
    gate.reject(new Error("made to fail"));
    await sweep.sweep();
    expect(failures).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(asked).toBe(2);
    sweep.stop();
  });
});

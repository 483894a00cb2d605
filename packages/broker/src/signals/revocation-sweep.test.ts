// The look for members who were revoked elsewhere: what it asks, whom it cuts, and that it goes on after a failure.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startRevocationSweep } from "./revocation-sweep.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
});
afterEach(() => {
  vi.useRealTimers();
});

test("asks every half second for those of the last minutes, and cuts them, also after a failure", async () => {
  const asked: number[] = [];
  const cut: unknown[] = [];
  const failures: unknown[] = [];
  const member = { meshId: "m", pubkey: "a" };
  const sweep = startRevocationSweep({
    nowMs: () => 1_000_000,
    findRevokedSince: async (sinceMs) => {
      asked.push(sinceMs);
      if (asked.length === 1) throw new Error("away");
      return [member];
    },
    cut: (each) => cut.push(each),
    onFailure: (error) => failures.push(error),
  });
  vi.advanceTimersByTime(500);
  await sweep.sweep();
  expect([failures.length, cut]).toEqual([1, []]);
  vi.advanceTimersByTime(500);
  await sweep.sweep();
  expect(cut).toEqual([member]);
  expect(asked).toEqual([700_000, 700_000]);
  sweep.stop();
  vi.advanceTimersByTime(5_000);
  expect(asked).toHaveLength(2);
});

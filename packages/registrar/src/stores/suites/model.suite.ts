// Random schedules against the naive model, on either store, with floors: a run that never met a case proves nothing of
// it. The seed is printed; CLAUDEMESH_SEED plays a run again.
import { expect } from "vitest";
import { createRandom, seedOfTheDay } from "../../../../../tests/support/seed.ts";
import { type Met, Schedule } from "../testing/schedule.ts";
import type { RegistrarHarness } from "./world.ts";

/** What 20,000 schedules have to have met at least; a slice has to meet its share. */
const fullCount = 20_000;
const floors = {
  ATTEMPT_COLLISION: 500,
  crashed_after: 500,
  crashed_before: 500,
  REPLAY_NONCE_CONSUMED: 500,
  compensations: 300,
  duplicate: 500,
  request_mismatch: 300,
  effect_exists: 300,
  NONCE_UNBOUND: 300,
  REQUEST_STALE: 300,
  revocations: 300,
  jumps: 300,
  bursts: 10,
};
const registeredShare = 0.3;

export type Schedules = {
  readonly count: number;
  /** Schedules on one database. */
  readonly perHarness: number;
  readonly open: () => Promise<{ readonly harness: RegistrarHarness; readonly end: () => Promise<void> | void }>;
};

export async function playSchedules({ count, perHarness, open }: Schedules): Promise<Met> {
  const seed = seedOfTheDay();
  const met: Met = new Map();
  for (let from = 0; from < count; from += perHarness) {
    const { harness, end } = await open();
    try {
      for (let index = from; index < Math.min(count, from + perHarness); index++) {
        try {
          await Schedule.play(harness, createRandom(seed * 1_000_003 + index), met);
        } catch (error) {
          throw new Error(`schedule ${index} of seed ${seed} fails`, { cause: error });
        }
      }
    } finally {
      await end();
    }
  }
  checkFloors(met, count);
  return met;
}

function checkFloors(met: Met, count: number): void {
  const summary = Object.fromEntries(met);
  process.stdout.write(`${count} schedules: ${JSON.stringify(summary)}\n`);
  for (const [what, floor] of Object.entries(floors)) {
    // A small slice may miss a rare case by chance; a share of less than one is no share.
    const share = Math.floor((floor * count) / fullCount);
    expect(met.get(what) ?? 0, `how often ${what} was met`).toBeGreaterThanOrEqual(share);
  }
  const registered = (met.get("registered") ?? 0) + (met.get("crashed_after") ?? 0);
  expect(registered / (met.get("requests") ?? 1), "the share of requests that registered").toBeGreaterThanOrEqual(
    registeredShare,
  );
}

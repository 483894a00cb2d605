// What one scan makes of the leases that it finds expired, and how often a request scans.
import { expect, test } from "vitest";
import { type LeaseAttempt, leaseWithRetries, movesOf, splitExpired } from "./expired-leases.ts";
import type { QueueRow } from "./stored-queue-message.ts";

const expired = (historyId: number, deliveries: number): QueueRow => ({
  meshId: "mesh",
  queue: "jobs",
  historyId,
  brokerMessageId: `message-${historyId}`,
  message: { state: "leased", deliveries, holder: "h", leaseToken: "t", expiresAtMs: 10 },
});

test("every expired lease is written down: as parked, as leased again, or as ready", () => {
  const [delivered3, delivered1, delivered2] = [expired(1, 3), expired(2, 1), expired(3, 2)];
  const split = splitExpired([delivered3, delivered1, delivered2], 3, 20);
  const moved = [{ from: delivered1, to: { state: "expired", deliveries: 1, settledAtMs: 20 } as const }];
  expect(movesOf(split, moved, 3, 20)).toEqual([
    { from: delivered3, to: { state: "parked", deliveries: 3, parkedAtMs: 10 } },
    ...moved,
    { from: delivered2, to: { state: "ready", deliveries: 2 } },
  ]);
});

test("a request scans until it has an outcome, and ten times at most", async () => {
  const answers: LeaseAttempt[] = [{ type: "lease_lost" }, { type: "retry" }, { type: "retry" }];
  expect(await leaseWithRetries(async () => answers.pop() as LeaseAttempt)).toEqual({ type: "lease_lost" });
  expect(answers).toEqual([]);
  let scans = 0;
  const findNothing = async (): Promise<LeaseAttempt> => {
    scans += 1;
    return { type: "retry" };
  };
  expect(await leaseWithRetries(findNothing)).toEqual({ type: "empty" });
  expect(scans).toBe(10);
});

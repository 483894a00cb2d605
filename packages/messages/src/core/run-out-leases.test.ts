// What one look makes of the leases that it finds run out, and how often a request looks.
import { expect, test } from "vitest";
import type { LeaseOutcome } from "../ports/queues.ts";
import { lookForMessages, movesOf, sortRunOut } from "./run-out-leases.ts";
import type { QueueRow } from "./stored-queue-message.ts";

const ended = (historyId: number, deliveries: number): QueueRow => ({
  meshId: "mesh",
  queue: "jobs",
  historyId,
  brokerMessageId: `message-${historyId}`,
  message: { state: "leased", deliveries, holder: "h", leaseToken: "t", expiresAtMs: 10 },
});

test("every lease that ran out becomes something: parked, what was done with it, or ready", () => {
  const [last, taken, left] = [ended(1, 3), ended(2, 1), ended(3, 2)];
  const runOut = sortRunOut([last, taken, left], 3, 20);
  const dealt = [{ from: taken, to: { state: "expired", deliveries: 1, settledAtMs: 20 } as const }];
  expect(movesOf(runOut, dealt, 3, 20)).toEqual([
    { from: last, to: { state: "parked", deliveries: 3, parkedAtMs: 10 } },
    ...dealt,
    { from: left, to: { state: "ready", deliveries: 2 } },
  ]);
});

test("a request looks until it has an answer, and not for ever", async () => {
  const answers: (LeaseOutcome | undefined)[] = [undefined, undefined, { type: "lease_lost" }];
  expect(await lookForMessages(async () => answers.shift())).toEqual({ type: "lease_lost" });
  let looks = 0;
  const findNothing = async () => {
    looks += 1;
    return undefined;
  };
  expect(await lookForMessages(findNothing)).toEqual({ type: "empty" });
  expect(looks).toBe(10);
});

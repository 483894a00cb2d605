// The steps of a message in a queue, one by one. Their order under competing consumers is tested on the stores.
import { describe, expect, test } from "vitest";
import {
  acknowledge,
  expireMessage,
  giveBack,
  grantLease,
  type Leased,
  messageAt,
  type QueueMessage,
  revive,
} from "./queue-message.ts";

const terms = { holder: "alice", leaseToken: "t1", expiresAtMs: 1_000 };
const leased: Leased = { state: "leased", deliveries: 2, ...terms };
const others: QueueMessage[] = [
  { state: "ready", deliveries: 2 },
  { state: "parked", deliveries: 5, parkedAtMs: 7 },
  { state: "acked", deliveries: 1, holder: "alice", leaseToken: "t1", settledAtMs: 7 },
  { state: "expired", deliveries: 0, settledAtMs: 7 },
];

describe("a lease", () => {
  test("counts as a delivery when it begins", () => {
    expect(grantLease({ state: "ready", deliveries: 1 }, terms)).toEqual(leased);
  });

  test("holds until its end and not at it", () => {
    expect(messageAt(leased, 5, 999)).toBe(leased);
    expect(messageAt(leased, 5, 1_000)).toEqual({ state: "ready", deliveries: 2 });
  });

  test("that expired after the last delivery has parked its message at that moment", () => {
    expect(messageAt(leased, 2, 5_000)).toEqual({ state: "parked", deliveries: 2, parkedAtMs: 1_000 });
    expect(messageAt(leased, 1, 5_000)).toMatchObject({ state: "parked" });
  });

  test("is what time acts on, and nothing else", () => {
    for (const message of others) expect(messageAt(message, 1, 5_000)).toBe(message);
  });

  test("given back makes its message available, or parks it after the last delivery", () => {
    expect(giveBack(leased, 3, 500)).toEqual({ state: "ready", deliveries: 2 });
    expect(giveBack(leased, 2, 500)).toEqual({ state: "parked", deliveries: 2, parkedAtMs: 500 });
  });

  test("that was acked keeps its holder and token", () => {
    expect(acknowledge(leased, 500)).toEqual({
      state: "acked",
      deliveries: 2,
      holder: "alice",
      leaseToken: "t1",
      settledAtMs: 500,
    });
  });
});

test("a revived message has all its deliveries available again", () => {
  expect(revive({ state: "parked", deliveries: 5, parkedAtMs: 7 })).toEqual({ state: "ready", deliveries: 0 });
});

test("what is not settled can expire, and what is settled stays as it is", () => {
  const states = [leased, ...others].map((message) => expireMessage(message, 9).state);
  expect(states).toEqual(["expired", "expired", "expired", "acked", "expired"]);
  expect(expireMessage(leased, 9)).toEqual({ state: "expired", deliveries: 2, settledAtMs: 9 });
  for (const message of others.slice(2)) expect(expireMessage(message, 9)).toBe(message);
});

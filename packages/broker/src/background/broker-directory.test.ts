// A broker's row among those of its store: renewed, read, announced when the list changes, and withdrawn.
import { brokersListedMax } from "@claudemesh/members/ports/brokers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { BrokerDirectory } from "./broker-directory.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
});
afterEach(() => {
  vi.useRealTimers();
});

function directory() {
  let urls: readonly string[] = ["https://a"];
  let failing = false;
  const announced: [string, number][] = [];
  const withdrawn: string[] = [];
  const changes: (readonly string[])[] = [];
  const failures: unknown[] = [];
  const brokers = new BrokerDirectory({
    store: {
      announce: async ({ id }, _nowMs, expiresAtMs) => {
        if (failing) throw new Error("the store is away");
        announced.push([id, expiresAtMs]);
      },
      withdraw: async (id) => void withdrawn.push(id),
      listUrls: async () => urls.slice(0, brokersListedMax),
      lastSeenMs: async () => 0,
    },
    brokerId: "b1",
    publicUrl: "https://a",
    nowMs: () => 1_000,
    intervalMs: 5_000,
    onFailure: (error) => void failures.push(error),
    onChange: (list) => void changes.push(list),
  });
  return {
    brokers,
    announced,
    withdrawn,
    changes,
    failures,
    set: (list: readonly string[]) => {
      urls = list;
    },
    fail: (isFailing: boolean) => {
      failing = isFailing;
    },
  };
}

test("the row is a lease that outlives two renewals that fail", async () => {
  const { brokers, announced, failures, fail } = directory();
  await brokers.start();
  expect(announced).toEqual([["b1", 16_000]]);
  fail(true);
  vi.advanceTimersByTime(5_000);
  await vi.waitFor(() => expect(failures).toHaveLength(1));
  fail(false);
  vi.advanceTimersByTime(5_000);
  await vi.waitFor(() => expect(announced).toHaveLength(2));
  await brokers.stop();
});

test("a change of the list is announced once, and a stop removes the row", async () => {
  const { brokers, changes, set, withdrawn, announced } = directory();
  await brokers.start();
  expect([brokers.urls(), changes]).toEqual([["https://a"], []]);
  set(["https://a", "https://b"]);
  vi.advanceTimersByTime(5_000);
  await vi.waitFor(() => expect(changes).toEqual([["https://a", "https://b"]]));
  vi.advanceTimersByTime(5_000);
  await vi.waitFor(() => expect(announced).toHaveLength(3));
  expect(changes).toHaveLength(1);
  await brokers.stop();
  expect(withdrawn).toEqual(["b1"]);
});

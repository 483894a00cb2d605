// The brokers of a store: who is listed, for how long, and what is left of one that ended without a word.
import { expect, test } from "vitest";
import { type BrokersStore, brokerRowKeptMs } from "../../ports/brokers.ts";

const nowMs = 1_700_000_000_000;
const one = { id: "broker-1", publicUrl: "https://one.example.org" };
const two = { id: "broker-2", publicUrl: "https://two.example.org" };

export function describeBrokers(store: () => BrokersStore): void {
  test("are listed by their public addresses while their leases last", async () => {
    expect(await store().listUrls(nowMs)).toEqual([]);
    await store().announce(two, nowMs, nowMs + 1_000);
    await store().announce(one, nowMs, nowMs + 2_000);
    await store().announce({ id: "broker-3", publicUrl: undefined }, nowMs, nowMs + 9_000);
    expect(await store().listUrls(nowMs)).toEqual([one.publicUrl, two.publicUrl]);
    expect(await store().listUrls(nowMs + 1_000)).toEqual([one.publicUrl]);
    await store().announce(two, nowMs + 1_500, nowMs + 2_500);
    expect(await store().listUrls(nowMs + 2_000)).toEqual([two.publicUrl]);
  });

  test("with one address stand in the list once, and go from it when they say so", async () => {
    await store().announce(one, nowMs, nowMs + 1_000);
    await store().announce({ ...one, id: "broker-9" }, nowMs, nowMs + 1_000);
    expect(await store().listUrls(nowMs)).toEqual([one.publicUrl]);
    await store().withdraw(one.id);
    expect(await store().listUrls(nowMs)).toEqual([one.publicUrl]);
    await store().withdraw("broker-9");
    await store().withdraw("broker-9");
    await store().withdraw("never seen");
    expect(await store().listUrls(nowMs)).toEqual([]);
  });

  test("leave the latest moment behind, and no rows for ever", async () => {
    expect(await store().lastSeenMs()).toBe(0);
    await store().announce(one, nowMs, nowMs + 1_000);
    await store().announce(two, nowMs - 5_000, nowMs + 1_000);
    await store().withdraw(one.id);
    expect(await store().lastSeenMs()).toBe(nowMs);
    const muchLaterMs = nowMs + brokerRowKeptMs + 2_000;
    await store().announce(two, muchLaterMs - 5_000, muchLaterMs);
    // Back in time only the row of the other one could be listed.
    expect(await store().listUrls(nowMs)).toEqual([two.publicUrl]);
    expect(await store().lastSeenMs()).toBe(muchLaterMs - 5_000);
  });
}

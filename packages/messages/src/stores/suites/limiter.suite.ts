// The mesh's budget: what spends it, what never does, where windows are cut, and how it is forgotten.
import { beforeEach, describe, expect, test } from "vitest";
import { createBarrier, dm, send, topic, type World } from "./world.ts";

/** For a world whose rate is three new messages a minute. */
export const tightRate = { limit: 3, windowSeconds: 60 };
const windowMs = tightRate.windowSeconds * 1000;

export function describeLimiter(world: () => World): void {
  let alice: string;
  let bob: string;
  beforeEach(async () => {
    [alice, bob] = await world().threeMembers();
    // Ten seconds into a window.
    world().nowMs = Math.floor(world().nowMs / windowMs) * windowMs + 10_000;
  });
  const offer = async (id: string) => (await world().accept(alice, send(id, dm(bob)))).type;

  test("a spent window refuses new ids until it is over, and says how long that is", async () => {
    expect([await offer("m1"), await offer("m2"), await offer("m3")]).toEqual(["accepted", "accepted", "accepted"]);
    const refusal = await world().accept(alice, send("m4", dm(bob)));
    expect(refusal).toEqual({ type: "rate_limited", retryAfterSeconds: 50 });
    expect(await world().effects()).toMatchObject({ dedupe: 3, history: 3 });
    world().nowMs += 49_999;
    expect(await offer("m4")).toBe("rate_limited");
    world().nowMs += 1;
    expect(await offer("m4")).toBe("accepted");
  });

  test("an idempotent retry of an already-committed id during a saturated window is a duplicate and spends nothing", async () => {
    const first = await world().accept(alice, send("m1", dm(bob)));
    if (first.type !== "accepted") throw new Error("the first send was not accepted");
    for (let again = 0; again < 5; again++) expect(await offer("m1")).toBe("duplicate");
    // The retries above left two units.
    expect([await offer("m2"), await offer("m3"), await offer("m4")]).toEqual(["accepted", "accepted", "rate_limited"]);
    const retry = await world().accept(alice, send("m1", dm(bob)));
    expect(retry).toMatchObject({ type: "duplicate", brokerMessageId: first.brokerMessageId, historyId: 1 });
    expect(await world().accept(alice, send("m1", dm(bob), "other"))).toMatchObject({ type: "reused" });
    expect(await world().accept(bob, send("m1", dm(bob)))).toMatchObject({ type: "owned_by_another" });
  });

  test("the same id races past the look-up many times and spends once", async () => {
    const barrier = createBarrier(6);
    const results = await Promise.all(
      Array.from({ length: 6 }, () => world().accept(alice, send("m1", dm(bob)), { afterLookUp: barrier })),
    );
    expect(results.filter(({ type }) => type === "accepted")).toHaveLength(1);
    expect(results.filter(({ type }) => type === "duplicate")).toHaveLength(5);
    expect([await offer("m2"), await offer("m3"), await offer("m4")]).toEqual(["accepted", "accepted", "rate_limited"]);
  });

  test("a send that loses the race in a saturated window is a duplicate, not rate-limited", async () => {
    await offer("m1");
    await offer("m2");
    const barrier = createBarrier(2);
    const results = await Promise.all(
      [1, 2].map(() => world().accept(alice, send("m3", dm(bob)), { afterLookUp: barrier })),
    );
    expect(results.map(({ type }) => type).sort()).toEqual(["accepted", "duplicate"]);
  });

  describe("a refusal in the transaction", () => {
    test("refunds nothing", async () => {
      const refused = await world().accept(alice, send("m1", topic("news")));
      expect(refused).toEqual({ type: "refused", code: "destination_not_found" });
      expect([await offer("m2"), await offer("m3"), await offer("m4")]).toEqual([
        "accepted",
        "accepted",
        "rate_limited",
      ]);
    });

    test("offered again in its window spends nothing more, and is counted when the window is spent by others", async () => {
      const news = send("m1", topic("news"));
      for (let again = 0; again < 4; again++) expect((await world().accept(alice, news)).type).toBe("refused");
      expect([await offer("m2"), await offer("m3"), await offer("m4")]).toEqual([
        "accepted",
        "accepted",
        "rate_limited",
      ]);
      await world().addTopic("news");
      expect((await world().accept(alice, news)).type).toBe("accepted");
    });

    test("offered in the next window is new traffic", async () => {
      const news = send("m1", topic("news"));
      await world().accept(alice, news);
      world().nowMs += windowMs;
      await world().accept(alice, news);
      expect([await offer("m2"), await offer("m3"), await offer("m4")]).toEqual([
        "accepted",
        "accepted",
        "rate_limited",
      ]);
    });
  });

  test("a send that is too large spends nothing", async () => {
    for (let id = 0; id < 5; id++) {
      const result = await world().accept(alice, send(`big-${id}`, dm(bob), "x".repeat(2_000)), { inlineBytes: 1_024 });
      expect(result).toEqual({ type: "refused", code: "payload_too_large" });
    }
    expect([await offer("m1"), await offer("m2"), await offer("m3")]).toEqual(["accepted", "accepted", "accepted"]);
  });

  test("is spent by every mesh alone", async () => {
    for (const id of ["m1", "m2", "m3"]) await offer(id);
    const other = await world().startOther("mesh-2");
    const [dave] = await other.threeMembers();
    other.nowMs = world().nowMs;
    expect(await other.accept(dave, send("m1", dm(dave)))).toMatchObject({ type: "accepted" });
    expect(await offer("m4")).toBe("rate_limited");
    await other.close();
  });

  test("survives a restart", async () => {
    await world().accept(alice, send("m1", topic("news")));
    await offer("m2");
    await world().reopen();
    expect([await offer("m3"), await offer("m4")]).toEqual(["accepted", "rate_limited"]);
    // Also which ids were counted.
    await world().addTopic("news");
    expect((await world().accept(alice, send("m1", topic("news")))).type).toBe("accepted");
  });

  describe("the sweep", () => {
    const recorded = async () => {
      const count = async (name: string) =>
        Number((await world().query(`SELECT count(*) AS n FROM ${world().table(name)}`))[0]?.n);
      return (await count("rate_limit_window")) + (await count("rate_limit_id"));
    };

    test("forgets windows that are over, a bounded number of records at a time", async () => {
      for (let window = 0; window < 5; window++) {
        for (let id = 0; id < 3; id++) expect(await offer(`m${window}-${id}`)).toBe("accepted");
        world().nowMs += windowMs;
      }
      expect(await recorded()).toBe(20);
      world().nowMs += windowMs;
      let swept = 0;
      for (;;) {
        const before = await recorded();
        const forgotten = await world().store.sweepLimiter(world().nowMs, 2);
        expect(forgotten).toBeLessThanOrEqual(2);
        expect(await recorded()).toBe(before - forgotten);
        swept += forgotten;
        if (forgotten === 0) break;
      }
      expect(swept).toBe(20);
    });

    test("leaves what still decides: the budget and the counted ids of the current window", async () => {
      await world().accept(alice, send("m1", topic("news")));
      await offer("m2");
      expect(await world().store.sweepLimiter(world().nowMs, 1_000)).toBe(0);
      world().nowMs += windowMs - 10_001;
      expect(await world().store.sweepLimiter(world().nowMs, 1_000)).toBe(0);
      expect([await offer("m3"), await offer("m4")]).toEqual(["accepted", "rate_limited"]);
      await world().addTopic("news");
      expect((await world().accept(alice, send("m1", topic("news")))).type).toBe("accepted");
    });
  });
}

// Housekeeping of one broker: passes that go on after a failure, ids that are looked for now and then, and a night's
// check that is done once for each mesh.

import { DatabaseSync } from "node:sqlite";
import { Strangers } from "@claudemesh/http/strangers";
import type { MessagesStore } from "@claudemesh/messages/ports";
import { pino } from "pino";
import { expect, test } from "vitest";
import { createTestMesh, startTestBroker } from "../../../../tests/support/broker-harness.ts";
import { readBrokerConfig } from "../config.ts";
import { createBrokerMetrics } from "../metrics.ts";
import { withOfflineStore } from "../offline/open-store.ts";
import { Housekeeping } from "./housekeeping.ts";

const hourMs = 3_600_000;

async function withHousekeeping(
  body: (tools: {
    housekeeping: Housekeeping;
    metrics: () => Promise<string>;
    clock: { nowMs: number };
    path: string;
  }) => Promise<void>,
  wrap: (store: MessagesStore) => MessagesStore = (store) => store,
): Promise<void> {
  const broker = await startTestBroker();
  const alice = await createTestMesh(broker);
  await alice.send("m1", alice);
  await broker.stop();
  const path = broker.storePath;
  const config = readBrokerConfig({ store: `sqlite:${path}` }, {}, undefined);
  await withOfflineStore(config.store, "change", async ({ messages, spaces, otherRules }) => {
    const clock = { nowMs: Date.now() };
    const counts = () => ({ limiterPassedUncounted: 0, limiterSpentThenRefused: 0 });
    const metrics = createBrokerMetrics({
      checkReady: async () => ({ store: "ok", limiter: "ok" }),
      strangers: new Strangers(100),
      counts,
      connected: () => 0,
      sessionsHeld: () => 0,
      signalsForged: () => 0,
      webhookCounts: async () => ({ pending: 0, parked: 0 }),
      onFailure: () => undefined,
    });
    const log = pino({ level: "silent" });
    const housekeeping = new Housekeeping({
      config,
      messages: wrap(messages),
      spaces,
      otherRules,
      metrics,
      log,
      nowMs: () => clock.nowMs,
    });
    await body({ housekeeping, metrics: () => metrics.render(), clock, path });
  });
}

async function passOnce(housekeeping: Housekeeping): Promise<void> {
  while (await housekeeping.sweepNext());
}

test("a mesh is checked once in a night, by whichever broker claims it, and again the next night", async () => {
  await withHousekeeping(async ({ housekeeping, metrics, clock, path }) => {
    const db = new DatabaseSync(path);
    db.exec("DELETE FROM message_queue");
    db.close();
    const found = async () => /cm_broker_dedupe_orphan_found (\d+)/.exec(await metrics())?.[1];
    await housekeeping.checkTonight();
    expect(await found()).toBe("1");
    const kept = new DatabaseSync(path);
    expect(kept.prepare("SELECT check_found, check_rules FROM mesh_housekeeping").get()).toEqual({
      check_found: expect.any(Number),
      check_rules: expect.stringContaining("dedupe_"),
    });
    kept.close();
    clock.nowMs += hourMs;
    await housekeeping.checkTonight();
    expect(await found()).toBe("1");
    clock.nowMs += 22 * hourMs;
    await housekeeping.checkTonight();
    expect(await found()).toBe("2");
  });
});

test("ids are looked for in the first pass and then every six hours", async () => {
  let looks = 0;
  const counting = (store: MessagesStore): MessagesStore => ({
    ...store,
    housekeeping: {
      ...store.housekeeping,
      forgetIds: (...given) => {
        looks += 1;
        return store.housekeeping.forgetIds(...given);
      },
    },
  });
  await withHousekeeping(async ({ housekeeping, clock }) => {
    const after = async (ms: number) => {
      clock.nowMs += ms;
      await passOnce(housekeeping);
      return looks;
    };
    expect([await after(0), await after(hourMs), await after(4 * hourMs), await after(hourMs)]).toEqual([1, 1, 1, 2]);
    await housekeeping.sweepNow();
    expect(looks).toBe(3);
  }, counting);
});

test("a pass that fails is over, and the next one begins anew", async () => {
  let failing = true;
  const faulty = (store: MessagesStore): MessagesStore => ({
    ...store,
    housekeeping: {
      ...store.housekeeping,
      sweepMesh: (...given) => {
        if (failing) return Promise.reject(new Error("made to fail"));
        return store.housekeeping.sweepMesh(...given);
      },
    },
  });
  await withHousekeeping(async ({ housekeeping }) => {
    await expect(passOnce(housekeeping)).rejects.toThrow("made to fail");
    await expect(passOnce(housekeeping)).rejects.toThrow("made to fail");
    failing = false;
    await passOnce(housekeeping);
  }, faulty);
});

test("a caller that asks while a check or a sweep runs gets what that one finds", async () => {
  await withHousekeeping(async ({ housekeeping, metrics }) => {
    const [first, second] = await Promise.all([housekeeping.checkNow(), housekeeping.checkNow()]);
    expect(second).toBe(first);
    expect(await metrics()).toContain("cm_broker_dedupe_orphan_check_total 1");
    expect(await housekeeping.checkNow()).not.toBe(first);
    const sweeping = housekeeping.sweepNow();
    expect(housekeeping.sweepNow()).toBe(sweeping);
    await sweeping;
  });
});

test("a stop ends a check that a caller waits for, after its next step", async () => {
  await withHousekeeping(async ({ housekeeping }) => {
    const asked = housekeeping.checkNow();
    housekeeping.stop();
    await expect(asked).rejects.toMatchObject({ kind: "closed" });
  });
});

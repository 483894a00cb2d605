// The brokers' common channel on a real Redis that goes away and comes back.
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { RestartableRedis } from "../../../../tests/support/restartable-redis.ts";
import { until } from "../../../../tests/support/world.ts";
import type { Signal } from "./signal.ts";
import { openSignalBus } from "./signal-bus.ts";

const redis = await RestartableRedis.create();
afterAll(() => redis?.stop());

function openBus(brokerId: string, secret = Buffer.from("of one store")) {
  const seen = { speaking: 0, listening: 0, forged: 0, heard: [] as Signal[] };
  const bus = openSignalBus({
    redisUrl: redis?.url ?? "",
    brokerId,
    secret,
    onSignal: (signal) => seen.heard.push(signal),
    onListening: () => {
      seen.listening += 1;
    },
    onSpeaking: () => {
      seen.speaking += 1;
    },
    onProblem: () => undefined,
    onForged: () => {
      seen.forged += 1;
    },
  });
  onTestFinished(() => bus.close());
  return { bus, seen };
}

describe.skipIf(redis === undefined)("the channel", () => {
  test("says when it can be spoken on and when it is listened to, at first and after each outage, and is heard then", async () => {
    const [a, b] = [openBus("a"), openBus("b")];
    const signal: Signal = { type: "presence_changed", meshId: "mesh-1" };
    for (const outages of [0, 1]) {
      if (outages > 0) await redis?.stop();
      await redis?.start();
      await until("both are back", () => a.seen.speaking > outages && b.seen.listening > outages);
      a.bus.publish(signal);
      await until("it is heard", () => b.seen.heard.length > outages);
    }
    expect(b.seen.heard).toEqual([signal, signal]);
    expect(a.seen.heard).toEqual([]);
  });

  test("is not obeyed by brokers of a store when a program without its secret speaks on it, and that is counted", async () => {
    await redis?.start();
    const [ours, stranger] = [openBus("ours"), openBus("stranger", Buffer.from("of another store"))];
    await until("both are there", () => ours.seen.listening > 0 && stranger.seen.speaking > 0);
    stranger.bus.publish({ type: "daemon_connected", meshId: "mesh-1", pubkey: "a", stamp: "9" });
    await until("it was refused", () => ours.seen.forged > 0);
    expect(ours.seen.heard).toEqual([]);
  });
});

// What a readiness check proves, and how seldom it asks for it.
import { StorageError } from "@claudemesh/storage/errors";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createReadiness, type ReadinessPorts } from "./readiness.ts";

function readiness(parts: Partial<ReadinessPorts> = {}) {
  let nowMs = 0;
  let writes = 0;
  const failures: unknown[] = [];
  const ask = createReadiness({
    writeStore: async () => {
      writes++;
    },
    writeLimiter: async () => true,
    limiterOpen: false,
    onFailure: (error) => void failures.push(error),
    monotonicMs: () => nowMs,
    ...parts,
  });
  return {
    ask,
    failures,
    pass: (ms: number) => {
      nowMs += ms;
    },
    writes: () => writes,
  };
}

const away = () => Promise.reject(new Error("read-only"));

describe("readiness", () => {
  test("is proven by one write for all who ask within a second", async () => {
    const broker = readiness();
    await Promise.all([broker.ask(), broker.ask()]);
    broker.pass(999);
    expect(await broker.ask()).toEqual({ store: "ok", limiter: "ok", refusal: undefined });
    expect(broker.writes()).toBe(1);
    broker.pass(1);
    await broker.ask();
    expect(broker.writes()).toBe(2);
  });

  test("names the store that takes no writes, and the limiter that does not", async () => {
    const noStore = readiness({ writeStore: away });
    expect(await noStore.ask()).toMatchObject({ store: "unavailable", limiter: "ok" });
    expect((await noStore.ask()).refusal).toMatchObject({ code: "storage_unavailable" });
    expect(noStore.failures).toMatchObject([{ message: "read-only" }]);
    const noLimiter = await readiness({ writeLimiter: async () => false }).ask();
    expect(noLimiter).toMatchObject({ store: "ok", limiter: "unavailable" });
    expect(noLimiter.refusal).toMatchObject({ code: "limiter_unavailable" });
  });

  test("calls a full disk what sends are refused with, and no store that is away", async () => {
    const full = readiness({ writeStore: () => Promise.reject(new StorageError("disk_full", "no room")) });
    expect(await full.ask()).toMatchObject({ store: "unavailable", refusal: { code: "insufficient_storage" } });
  });

  test("does without a limiter where sends pass uncounted, and says so", async () => {
    const open = readiness({ writeLimiter: async () => false, limiterOpen: true });
    expect(await open.ask()).toEqual({ store: "ok", limiter: "uncounted", refusal: undefined });
  });

  test("asks a silent store once, however many ask meanwhile, and gives it up", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    let asked = 0;
    const silent = readiness({
      writeStore: () => {
        asked++;
        return new Promise<never>(() => undefined);
      },
    });
    const first = silent.ask();
    silent.pass(1_500);
    const second = silent.ask();
    await vi.advanceTimersByTimeAsync(2_000);
    for (const answer of [first, second]) expect(await answer).toMatchObject({ store: "unavailable", limiter: "ok" });
    expect(asked).toBe(1);
  });
});

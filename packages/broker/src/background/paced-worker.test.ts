// The pace of a worker, with timers of our own.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { PacedWorker } from "./paced-worker.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function startWorker(step: () => Promise<boolean>): { worker: PacedWorker; failures: unknown[] } {
  const failures: unknown[] = [];
  const worker = new PacedWorker({ step, idleMs: 60_000, onFailure: (error) => failures.push(error) });
  worker.start();
  return { worker, failures };
}

test("steps follow each other while there is more to do, and then wait for the next look", async () => {
  const left = [true, true, false];
  const step = vi.fn(async () => left.shift() ?? false);
  const { worker } = startWorker(step);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(step).toHaveBeenCalledTimes(3);
  await vi.advanceTimersByTimeAsync(58_000);
  expect(step).toHaveBeenCalledTimes(3);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(step).toHaveBeenCalledTimes(4);
  await worker.stop();
});

test("a worker that can wait begins after its delay", async () => {
  const step = vi.fn(async () => false);
  const worker = new PacedWorker({ step, idleMs: 60_000, startDelayMs: 5_000, onFailure: () => undefined });
  worker.start();
  await vi.advanceTimersByTimeAsync(4_999);
  expect(step).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(step).toHaveBeenCalledTimes(1);
  await worker.stop();
});

test("a long step is followed by a longer rest, up to a second", async () => {
  const step = vi.fn(async () => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return true;
  });
  const { worker } = startWorker(step);
  await vi.advanceTimersByTimeAsync(60);
  expect(step).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(300);
  expect(step).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(200);
  expect(step).toHaveBeenCalledTimes(2);
  const stopping = worker.stop();
  await vi.advanceTimersByTimeAsync(100);
  await stopping;
});

test("a failure is reported, and the worker tries again later", async () => {
  const step = vi
    .fn<() => Promise<boolean>>()
    .mockRejectedValueOnce(new Error("made to fail"))
    .mockResolvedValue(false);
  const { worker, failures } = startWorker(step);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(failures).toEqual([new Error("made to fail")]);
  expect(step).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(step).toHaveBeenCalledTimes(2);
  await worker.stop();
});

test("a stop waits for the step under way, begins no other, and takes its failure for the end", async () => {
  const gate = Promise.withResolvers<boolean>();
  const step = vi.fn(() => gate.promise);
  const { worker, failures } = startWorker(step);
  await vi.advanceTimersByTimeAsync(1);
  let stopped = false;
  const stopping = worker.stop().then(() => {
    stopped = true;
  });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(stopped).toBe(false);
  gate.reject(new Error("the store is closed"));
  await stopping;
  await vi.advanceTimersByTimeAsync(600_000);
  expect(step).toHaveBeenCalledTimes(1);
  expect(failures).toEqual([]);
});

test("a call to wake up ends the wait for the next look, or leads to one more step after the one under way", async () => {
  const gate = Promise.withResolvers<void>();
  const step = vi.fn(async () => {
    if (step.mock.calls.length === 2) await gate.promise;
    return false;
  });
  const { worker } = startWorker(step);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(step).toHaveBeenCalledTimes(1);
  worker.wake();
  worker.wake();
  await vi.advanceTimersByTimeAsync(100);
  expect(step).toHaveBeenCalledTimes(2);
  worker.wake();
  gate.resolve();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(step).toHaveBeenCalledTimes(3);
  await vi.advanceTimersByTimeAsync(30_000);
  expect(step).toHaveBeenCalledTimes(3);
  await worker.stop();
});

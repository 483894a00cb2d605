import { describe, expect, it } from "vitest";
import { recordingLog } from "../testing/test-stores.ts";
import { admitWithRoom, createStorageGauge } from "./storage-gauge.ts";

function setUp(usedBytes: number, maxBytes = 1_000_000) {
  const disk = { usedBytes, measurements: 0, doneRows: 0, rowBytes: 0, steps: 0 };
  const log = recordingLog();
  const usedBytesNow = () => {
    disk.measurements++;
    return disk.usedBytes;
  };
  const reported: object[] = [];
  const clock = { nowMs: () => 1_000 };
  const prune = async (_before: number, _nowMs: number, rows: number) => {
    const pruned = Math.min(disk.doneRows, rows);
    disk.doneRows -= pruned;
    disk.usedBytes -= pruned * disk.rowBytes;
    disk.steps++;
    return pruned;
  };
  const outbox = { usedBytes: usedBytesNow, prune };
  const onPressure = (fill: object) => void reported.push(fill);
  const gauge = createStorageGauge({ outbox, maxBytes: () => maxBytes, clock, log, onPressure });
  return { disk, log, gauge, reported };
}

describe("the outbox's own limit", () => {
  it("refuses new sends from 95 % on, with what is used and what is allowed", () => {
    const { gauge, disk } = setUp(949_000);
    gauge.admit(10);
    disk.usedBytes = 950_000;
    expect(() => gauge.admit(10)).toThrow(/claudemesh daemon status.*raise \[outbox\] max_bytes/);
    expect(() => gauge.admit(10)).toThrow(
      expect.objectContaining({ code: "insufficient_storage", details: { used_bytes: 950_000, max_bytes: 1_000_000 } }),
    );
  });

  it("lets sends in again as soon as there is room", () => {
    const { gauge, disk } = setUp(960_000);
    expect(() => gauge.admit(10)).toThrow();
    disk.usedBytes = 100_000;
    gauge.admit(10);
  });

  it("measures once for many sends while there is room", () => {
    const { gauge, disk } = setUp(1_000, 10_000_000);
    for (let sends = 0; sends < 1_000; sends++) gauge.admit(100);
    expect(disk.measurements).toBeLessThanOrEqual(5);
  });

  it("notices what other writers used: an estimate never stands for more than 256 sends", () => {
    const { gauge, disk } = setUp(1_000, 10_000_000);
    disk.usedBytes = 9_900_000;
    const refusedAt = Array.from({ length: 300 }).findIndex(() => {
      try {
        gauge.admit(1);
        return false;
      } catch {
        return true;
      }
    });
    expect(refusedAt).toBe(255);
  });

  it("warns once on the way over 80 %", () => {
    const { gauge, disk, log } = setUp(100_000);
    disk.usedBytes = 800_000;
    for (let sends = 0; sends < 600; sends++) gauge.admit(1);
    expect(log.events()).toEqual(["outbox_pressure_high"]);
  });
});

describe("rows that are done", () => {
  it("make room before a send is refused, no more of them than it takes", async () => {
    const { gauge, disk } = setUp(960_000);
    Object.assign(disk, { doneRows: 10_000, rowBytes: 100 });
    expect(() => gauge.admit(10)).toThrow();
    await Promise.all([admitWithRoom(gauge, 10), admitWithRoom(gauge, 10)]);
    expect(disk.usedBytes).toBeLessThan(900_000);
    expect(disk.steps).toBe(3);
    expect(disk.doneRows).toBe(10_000 - 3 * 256);
  });

  it("are put away in bounded steps for one send, and the next one goes on", async () => {
    const { gauge, disk } = setUp(990_000);
    Object.assign(disk, { doneRows: 100_000, rowBytes: 1 });
    expect(await gauge.makeRoom(10)).toBe(false);
    expect(disk.steps).toBe(16);
  });

  it("that are not there leave the refusal as it is", async () => {
    const { gauge, disk } = setUp(960_000);
    await expect(admitWithRoom(gauge, 10)).rejects.toMatchObject({ code: "insufficient_storage" });
    expect(disk.steps).toBe(1);
  });
});

it("pressure is reported once each time that it rises above 80 %", () => {
  const { gauge, disk, reported } = setUp(850_000);
  for (let sends = 0; sends < 600; sends++) gauge.admit(0 - 1_024);
  expect(reported).toEqual([{ used_bytes: 850_000, max_bytes: 1_000_000 }]);
  disk.usedBytes = 100;
  for (let sends = 0; sends < 256; sends++) gauge.admit(0 - 1_024);
  disk.usedBytes = 900_000;
  for (let sends = 0; sends < 256; sends++) gauge.admit(0 - 1_024);
  expect(reported).toHaveLength(2);
});

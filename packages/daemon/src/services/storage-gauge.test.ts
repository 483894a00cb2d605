import { describe, expect, it } from "vitest";
import { recordingLog } from "../testing/test-stores.ts";
import { createStorageGauge } from "./storage-gauge.ts";

function setUp(usedBytes: number, maxBytes = 1_000_000) {
  const disk = { usedBytes, measurements: 0 };
  const log = recordingLog();
  const usedBytesNow = () => {
    disk.measurements++;
    return disk.usedBytes;
  };
  const gauge = createStorageGauge({ usedBytes: usedBytesNow }, () => maxBytes, log);
  return { disk, log, gauge };
}

describe("the outbox's own limit", () => {
  it("refuses new sends from 95 % on, with what is used and what is allowed", () => {
    const { gauge, disk } = setUp(949_000);
    gauge.admit(10);
    disk.usedBytes = 950_000;
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
    expect(log.events()).toEqual(["outbox_filling"]);
  });
});

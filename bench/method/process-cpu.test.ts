import { describe, expect, it } from "vitest";
import { countCpu, parseCpuSeconds } from "./process-cpu.ts";

describe("the CPU time of a process", () => {
  it("is the sum of user and kernel ticks, whatever the process is called", () => {
    const stat = "42 (a ) R 1 (b) S 1 42 42 0 -1 4194304 100 0 0 0 250 50 7 9 20 0 11 0 1234 0 0";
    expect(parseCpuSeconds(stat)).toBe(3);
    expect(parseCpuSeconds("no such thing")).toBeUndefined();
  });

  it("is counted for the time of the work, for each process", async () => {
    const spin = async () => {
      const before = process.cpuUsage();
      for (;;) {
        const { user, system } = process.cpuUsage(before);
        if (user + system > 100_000) return "done";
      }
    };
    const { result, cpu } = await countCpu({ here: process.pid }, spin);
    expect(result).toBe("done");
    if (process.platform === "linux") expect(cpu.here).toBeGreaterThanOrEqual(0.09);
    else expect(cpu.here).toBeUndefined();
  });
});

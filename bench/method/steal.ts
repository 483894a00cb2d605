// CPU time that the hypervisor gave to others, read from the kernel's counters. Where the kernel does not say,
// the share is undefined.
import { readFileSync } from "node:fs";

/** Ticks since boot, over all cores. */
export type CpuTimes = { readonly total: number; readonly steal: number };

const stealColumn = 7;

/** Reads the first line of /proc/stat; undefined when the text is something else. */
export function parseCpuTimes(text: string): CpuTimes | undefined {
  const line = /^cpu +([0-9]+(?: [0-9]+)*)/m.exec(text)?.[1];
  if (line === undefined) return undefined;
  // What comes after steal is time of guests, which the columns for user and nice hold already.
  const ticks = line
    .split(" ")
    .slice(0, stealColumn + 1)
    .map(Number);
  const steal = ticks[stealColumn];
  if (steal === undefined) return undefined;
  return { total: ticks.reduce((sum, each) => sum + each, 0), steal };
}

/** Between 0 and 1; undefined when a reading is missing or no time passed between them. */
export function stealShare(before: CpuTimes | undefined, after: CpuTimes | undefined): number | undefined {
  if (before === undefined || after === undefined || after.total <= before.total) return undefined;
  return (after.steal - before.steal) / (after.total - before.total);
}

export function readCpuTimes(): CpuTimes | undefined {
  return process.platform === "linux" ? parseCpuTimes(readFileSync("/proc/stat", "utf8")) : undefined;
}

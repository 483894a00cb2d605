// CPU time that processes have used, all their threads together, from the kernel's counters. Where the kernel does not
// say, the figure is undefined.
import { readFileSync } from "node:fs";

/** The kernel's clock ticks, whatever the machine: part of the interface of /proc. */
const ticksPerSecond = 100;

/** Seconds in user and kernel mode, from /proc/<pid>/stat; undefined when the text is something else. */
export function parseCpuSeconds(text: string): number | undefined {
  // The name in brackets may hold anything, brackets too.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const ticks = Number(fields[11]) + Number(fields[12]);
  return Number.isFinite(ticks) ? ticks / ticksPerSecond : undefined;
}

export type CpuSecondsOf<Name extends string> = Readonly<Record<Name, number | undefined>>;

/** What each process uses while the work runs. */
export async function countCpu<Name extends string, Result>(
  pids: Readonly<Record<Name, number>>,
  work: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly cpu: CpuSecondsOf<Name> }> {
  const names = Object.keys(pids) as Name[];
  const before = names.map((name) => readCpuSeconds(pids[name]));
  const result = await work();
  const used = names.map((name, at) => {
    const [from, to] = [before[at], readCpuSeconds(pids[name])];
    return [name, from === undefined || to === undefined ? undefined : to - from];
  });
  return { result, cpu: Object.fromEntries(used) as CpuSecondsOf<Name> };
}

function readCpuSeconds(pid: number): number | undefined {
  return process.platform === "linux" ? parseCpuSeconds(readFileSync(`/proc/${pid}/stat`, "utf8")) : undefined;
}

// How long a process takes to say that it is ready, what it then holds, and how long a short one takes to its end.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { Closing } from "./closing.ts";

export type ProcessSpec = {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
};

export type StartedProcess = { readonly readyMs: number; readonly rssMiB: number; readonly stop: () => Promise<void> };

/** Memory settles a moment after the ready line. */
const idleMs = 500;

export async function startTimed(spec: ProcessSpec, closing: Closing): Promise<StartedProcess> {
  const startedAtMs = performance.now();
  const child = spawn(spec.command, spec.args, { env: spec.env, stdio: ["ignore", "pipe", "inherit"] });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const stop = closing.add(async () => {
    child.kill("SIGTERM");
    await exited;
  });
  let readyMs: number | undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.includes('"event":"ready"')) continue;
    readyMs = performance.now() - startedAtMs;
    break;
  }
  if (readyMs === undefined) throw new Error(`${spec.command} ${spec.args.join(" ")} ended before it was ready`);
  await sleep(idleMs);
  const kB = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1];
  return { readyMs, rssMiB: Number(kB) / 1_024, stop };
}

/** The median of some runs. */
export async function timeRuns(spec: ProcessSpec, runs: number): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < runs; run++) {
    const startedAtMs = performance.now();
    const child = spawn(spec.command, spec.args, { env: spec.env, stdio: ["ignore", "ignore", "inherit"] });
    const code = await new Promise<number | null>((resolve) => child.once("exit", resolve));
    if (code !== 0) throw new Error(`${spec.command} ${spec.args.join(" ")} exited ${code}`);
    times.push(performance.now() - startedAtMs);
  }
  return times.sort((a, b) => a - b)[Math.floor(runs / 2)] ?? Number.NaN;
}

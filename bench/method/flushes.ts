// How often a process flushes to disk while it works, counted by strace where there is one that may look. Tracing
// slows the process down, so this happens beside the timed segments, never within them.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";

/** Calls in strace's output; a call that strace shows in two parts counts once. */
export function countFlushCalls(trace: string): number {
  return trace.match(/\bf(?:data)?sync\(/g)?.length ?? 0;
}

/** Undefined where strace is missing or not allowed; `work` is then not done. */
export async function countFlushes<Result>(
  pid: number,
  tracePath: string,
  work: () => Promise<Result>,
): Promise<{ readonly flushes: number; readonly result: Result } | undefined> {
  const args = ["-f", "-e", "trace=fsync,fdatasync", "-o", tracePath, "-p", String(pid)];
  const strace = spawn("strace", args, { stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise<void>((resolve) => {
    strace.once("error", () => resolve());
    strace.once("close", () => resolve());
  });
  const attached = new Promise<boolean>((resolve) => {
    strace.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (/\battached\b/.test(text)) resolve(true);
    });
    void ended.then(() => resolve(false));
  });
  if (!(await attached)) return undefined;
  try {
    const result = await work();
    strace.kill("SIGINT");
    await ended;
    return { flushes: countFlushCalls(readFileSync(tracePath, "utf8")), result };
  } finally {
    strace.kill("SIGINT");
  }
}

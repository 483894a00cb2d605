// Starts this same program as a process of its own, waits until it says that it is ready, and leaves it running. A
// start that fails gives the reason that the process itself gave.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { type ErrorBody, isErrorBody } from "@claudemesh/protocol/errors";
import { Refused } from "./exit-codes.ts";
import { launcherPath } from "./launcher.ts";
import type { Shell } from "./shell.ts";

const complaintCharactersMax = 4_096;

/** `args` must include `--json`: the ready line and the refusal are read from it. */
export async function startInBackground<Settled>(
  args: readonly string[],
  shell: Pick<Shell, "env" | "home">,
  logPath: string,
  /** What else is waited for; `hasEnded` tells whether the process is gone. */
  settle: (hasEnded: () => boolean) => Promise<Settled>,
): Promise<{ readonly ready: Record<string, unknown>; readonly settled: Settled }> {
  const child = spawn(process.execPath, [...process.execArgv, launcherPath(), ...args], {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    // It must not keep anybody's folder busy, so a home that was given as a relative path has to be spelled out.
    cwd: "/",
    env: { ...shell.env, CLAUDEMESH_HOME: shell.home },
  });
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaint = (complaint + text).slice(-complaintCharactersMax);
  });
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  const said = await readFirstWord(child.stdout);
  if (said?.event !== "ready") {
    const end = await ended;
    if (said !== undefined && isErrorBody(said)) throw new Refused(503, said);
    throw new Error(complaint.trim() || `It ended with ${end} before it was ready; see ${logPath}.`);
  }
  child.stdout.destroy();
  child.stderr.destroy();
  try {
    return { ready: said, settled: await settle(() => child.exitCode !== null || child.signalCode !== null) };
  } finally {
    child.unref();
  }
}

/** The ready line or the refusal; undefined when the process ends without either. */
async function readFirstWord(stdout: Readable): Promise<Record<string, unknown> | ErrorBody | undefined> {
  for await (const line of createInterface({ input: stdout })) {
    const value = parseObject(line);
    if (value !== undefined && (value.event === "ready" || isErrorBody(value))) return value;
  }
  return undefined;
}

function parseObject(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

// Leaving a daemon running in the background, for the commands that start one, and what all of them say about it.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { MeshPaths } from "@claudemesh/client/home";
import { type ErrorBody, isErrorBody } from "@claudemesh/protocol/errors";
import type { Outcome } from "../command.ts";
import { exitCodes, Refused } from "../exit-codes.ts";
import { hint } from "../hints.ts";
import { launcherPath } from "../launcher.ts";
import type { Shell } from "../shell.ts";
import { describeBroker, isHopeless, waitUntilSettled } from "./daemon-settling.ts";

export type BackgroundExtras = {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
};

export async function startDaemonInBackground(
  shell: Shell,
  paths: MeshPaths,
  extras: BackgroundExtras = { args: [], env: {} },
): Promise<Outcome> {
  const args = ["daemon", "up", "--foreground", "--json", "--mesh", paths.mesh, ...extras.args];
  const env = { ...shell.env, ...extras.env };
  const { ready, settled } = await startInBackground(args, { home: shell.home, env }, paths.log, (hasEnded) =>
    waitUntilSettled(paths, hasEnded),
  );
  // It runs, and keeps what it has; but that it started is no success.
  if (isHopeless(settled)) process.exitCode = exitCodes.failed;
  const daemon = describeDaemon(paths.mesh, String(ready.socket), ready.http_port as number | null);
  return { value: { ...ready, broker: settled.broker }, text: hint(shell, `${daemon}\n${describeBroker(settled)}`) };
}

export function describeDaemon(mesh: string, socket: string, httpPort: number | null | undefined): string {
  const http = httpPort == null ? "" : `\nHTTP    127.0.0.1:${httpPort}`;
  return `The daemon of ${mesh} is up. Try:  claudemesh send @self "hello"\nSocket  ${socket}${http}`;
}

const complaintCharactersMax = 4_096;

/**
 * Starts this same program as a process of its own, waits until it says that it is ready, and leaves it running. A start that
 * fails gives the reason that the process itself gave. `args` must include `--json`: the ready line and the refusal are read
 * from it.
 */
async function startInBackground<Settled>(
  args: readonly string[],
  shell: Pick<Shell, "env" | "home">,
  logPath: string,
  /** What else is waited for; `hasEnded` tells whether the process is gone. */
  settle: (hasEnded: () => boolean) => Promise<Settled>,
): Promise<{ readonly ready: Record<string, unknown>; readonly settled: Settled }> {
  const child = spawn(process.execPath, [...process.execArgv, launcherPath(), ...args], {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    // It must keep no folder of a user busy, so a home that was given as a relative path has to be spelled out.
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

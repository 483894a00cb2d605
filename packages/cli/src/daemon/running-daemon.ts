// Finding the daemon that runs for a mesh, and ending it. The daemon that answers on the socket says who it is; a pid
// file alone could name any process.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { DaemonUnreachable } from "@claudemesh/client/daemon";
import type { MeshPaths } from "@claudemesh/client/home";
import { expectBody } from "../exit-codes.ts";
import { callDaemon } from "./daemon-access.ts";

const pollMs = 50;
const giveUpMs = 10_000;

/** Its process id; undefined when no daemon runs. Throws when something took the question and did not answer. */
export async function findRunningDaemon(paths: MeshPaths): Promise<number | undefined> {
  try {
    const { pid } = await callDaemon(paths, async (daemon) => expectBody(await daemon.version()));
    if (typeof pid !== "number") throw new Error("The daemon does not say its process id; is it another version?");
    return pid;
  } catch (error) {
    if (error instanceof DaemonUnreachable && !error.sent) return undefined;
    throw error;
  }
}

/** Asks the daemon to end and waits until it has. */
export async function endDaemon(paths: MeshPaths, pid: number): Promise<void> {
  process.kill(pid, "SIGTERM");
  for (let waitedMs = 0; waitedMs < giveUpMs; waitedMs += pollMs) {
    if (!isRunning(pid)) return;
    await sleep(pollMs);
  }
  throw new Error(`Process ${pid} has not ended after ${giveUpMs / 1000} s; look into ${paths.log}.`);
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
  // In a container whose first process reaps no others, a process that has ended keeps its number.
  return !/\) [ZX] /.test(readProcessFile(pid, "stat") ?? "");
}

/** The service that a process belongs to, as systemd names it; undefined where it belongs to none of ours. */
export function serviceOf(pid: number): { readonly unit: string; readonly scope: "user" | "system" } | undefined {
  return serviceInControlGroup(readProcessFile(pid, "cgroup") ?? "");
}

export function serviceInControlGroup(text: string): ReturnType<typeof serviceOf> {
  const [, path = "", unit] = /:(\/.*\/|\/)(claudemesh-[^/\n]+\.service)$/m.exec(text) ?? [];
  if (unit === undefined) return undefined;
  return { unit, scope: /\/user@[0-9]+\.service\//.test(path) ? "user" : "system" };
}

/** True when the daemon lives in the same process as a broker, under `claudemesh up`. Known only where there is /proc. */
export function isPartOfUp(pid: number): boolean {
  return /claudemesh\.js\0up(?:\0|$)/.test(readProcessFile(pid, "cmdline") ?? "");
}

/** Undefined where the process has ended, or where there is no /proc. */
function readProcessFile(pid: number, name: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error) return undefined;
    throw error;
  }
}

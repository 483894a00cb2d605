// The files, programs and daemon that installing a service touches on this machine.
import { spawnSync } from "node:child_process";
import { accessSync, chmodSync, constants, mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { MeshPaths } from "@claudemesh/client/home";
import { replacePrivateFile } from "@claudemesh/client/private-files";
import { findRunningDaemon } from "../running-daemon.ts";
import type { ServicePorts } from "./install-service.ts";

const pollMs = 100;
const goneMs = 15_000;

export function createServicePorts(paths: MeshPaths, env: Readonly<Record<string, string | undefined>>): ServicePorts {
  const isDaemonUp = async () => (await findRunningDaemon(paths)) !== undefined;
  return {
    read: readIfPresent,
    write: (path, text) => {
      mkdirSync(dirname(path), { recursive: true });
      replacePrivateFile(path, text);
      // A service manager reads it for everybody, and complains about files that only one may read.
      chmodSync(path, 0o644);
    },
    remove: (path) => rmSync(path, { force: true }),
    isFolder: (path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true,
    hasProgram: (name) => (env.PATH ?? "").split(delimiter).some((folder) => isExecutable(join(folder, name))),
    run: runProgram,
    isDaemonUp,
    untilDaemonIsGone: async () => {
      for (let waitedMs = 0; await isDaemonUp(); waitedMs += pollMs) {
        if (waitedMs >= goneMs)
          throw new Error(`The daemon has not ended after ${goneMs / 1000} s; look into ${paths.log}.`);
        await sleep(pollMs);
      }
    },
  };
}

function runProgram([program = "", ...args]: readonly string[]): string | undefined {
  const { status, signal, stderr, error } = spawnSync(program, args, { encoding: "utf8" });
  if (error !== undefined) return error.message;
  if (status === 0) return undefined;
  return stderr.trim() || `It ended with ${signal ?? `exit code ${status}`}.`;
}

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error) return false;
    throw error;
  }
}

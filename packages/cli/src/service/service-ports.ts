// The files and programs that installing a service touches on this machine.
import { spawnSync } from "node:child_process";
import { accessSync, chmodSync, constants, mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { MeshPaths } from "@claudemesh/client/home";
import { replacePrivateFile } from "@claudemesh/client/internal/private-files";
import { findRunningDaemon } from "../daemon/running-daemon.ts";
import type { ServicePorts } from "./install-service.ts";

const pollMs = 100;
const connectMs = 2_000;
const goneMs = 15_000;

/** How to tell whether the program of a service runs, and what to do about one that runs outside it. */
export type ServedProgram = Pick<ServicePorts, "isUp" | "handOver"> & { readonly log: string };

export function daemonOf(paths: MeshPaths): ServedProgram {
  return {
    isUp: async () => (await findRunningDaemon(paths)) !== undefined,
    handOver: "claudemesh daemon down",
    log: paths.log,
  };
}

/** A broker is there where its address takes connections. */
export function brokerAt({ host, port }: { readonly host: string; readonly port: number }): ServedProgram {
  const address = { "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host;
  const isUp = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect({ host: address, port, timeout: connectMs });
      const end = (isThere: boolean) => {
        socket.destroy();
        resolve(isThere);
      };
      socket.once("connect", () => end(true));
      socket.once("timeout", () => end(false));
      socket.once("error", () => end(false));
    });
  return { isUp, handOver: `(end the program that listens on ${address}:${port})`, log: "its output" };
}

export function createServicePorts(
  { isUp, handOver, log }: ServedProgram,
  env: Readonly<Record<string, string | undefined>>,
): ServicePorts {
  return {
    read: readIfPresent,
    write: (path, text) => {
      mkdirSync(dirname(path), { recursive: true });
      replacePrivateFile(path, text);
      // A service manager reads it for every user, and complains about files that only one may read.
      chmodSync(path, 0o644);
    },
    remove: (path) => rmSync(path, { force: true }),
    isFolder: (path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true,
    hasProgram: (name) => (env.PATH ?? "").split(delimiter).some((folder) => isExecutable(join(folder, name))),
    run: runProgram,
    isUp,
    handOver,
    untilGone: async () => {
      for (let waitedMs = 0; await isUp(); waitedMs += pollMs) {
        if (waitedMs >= goneMs) throw new Error(`It has not ended after ${goneMs / 1000} s; look into ${log}.`);
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

// `claudemesh daemon down`: asks the running daemon to end and waits until it has. Rows stay for the next start.

import { setTimeout as sleep } from "node:timers/promises";
import { DaemonUnreachable } from "@claudemesh/client/daemon";
import type { MeshPaths } from "@claudemesh/client/home";
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { pathsFor, type Shell } from "../shell.ts";

const pollMs = 50;
const giveUpMs = 10_000;

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const paths = pathsFor(shell, options);
      const pid = await runningPid(paths);
      if (pid === undefined) {
        return { value: { mesh: paths.mesh, stopped: false }, text: `No daemon of ${paths.mesh} is running.` };
      }
      process.kill(pid, "SIGTERM");
      await untilGone(paths, pid);
      return { value: { mesh: paths.mesh, stopped: true, pid }, text: `The daemon of ${paths.mesh} has stopped.` };
    }),
  );
  examples(command, "claudemesh daemon down");
}

/** The daemon that answers on the socket says who it is; a pid file alone could name anybody. */
async function runningPid(paths: MeshPaths): Promise<number | undefined> {
  try {
    const { pid } = await withDaemon(paths, async (daemon) => expectBody(await daemon.version()));
    if (typeof pid !== "number") throw new Error("The daemon does not say its process id; is it another version?");
    return pid;
  } catch (error) {
    if (error instanceof DaemonUnreachable && !error.sent) return undefined;
    throw error;
  }
}

async function untilGone(paths: MeshPaths, pid: number): Promise<void> {
  for (let waitedMs = 0; waitedMs < giveUpMs; waitedMs += pollMs) {
    if (!isAlive(pid)) return;
    await sleep(pollMs);
  }
  throw new Error(`Process ${pid} has not ended after ${giveUpMs / 1000} s; look into ${paths.log}.`);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}

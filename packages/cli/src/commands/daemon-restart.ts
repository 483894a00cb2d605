// `claudemesh daemon restart`: down, then up in the background. What systemd runs is systemd's to restart: started from
// here it would live on outside its service.
import { existsSync } from "node:fs";
import type { MeshPaths } from "@claudemesh/client/home";
import type { Command } from "commander";
import { type CommonOptions, examples, type Outcome, run, withMesh } from "../command.ts";
import { startDaemonInBackground } from "../daemon-start.ts";
import { endDaemon, findRunningDaemon, isPartOfUp, serviceOf } from "../running-daemon.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, () => restart(shell, pathsFor(shell, options))),
  );
  examples(command, "claudemesh daemon restart", "claudemesh daemon restart --mesh acme --json");
}

async function restart(shell: Shell, paths: MeshPaths): Promise<Outcome> {
  const pid = await findRunningDaemon(paths);
  if (pid !== undefined) {
    const service = serviceOf(pid);
    if (service !== undefined) {
      const systemctl = service.scope === "user" ? "systemctl --user" : "sudo systemctl";
      throw new Error(`This daemon runs as a service; restart it with: ${systemctl} restart ${service.unit}`);
    }
    if (isPartOfUp(pid)) {
      throw new Error(
        "This daemon is part of `claudemesh up`; stop that with Ctrl-C in its terminal and start it again.",
      );
    }
    if (!existsSync(paths.keypair)) {
      throw new Error(
        "This daemon is ephemeral and its keys would end with it: stop it with `claudemesh daemon down`, and start another with a new invite.",
      );
    }
    await endDaemon(paths, pid);
  }
  return startDaemonInBackground(shell, paths);
}

// `claudemesh daemon down`: asks the running daemon to end and waits until it has. Rows stay for the next start.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { endDaemon, findRunningDaemon, isPartOfUp } from "../running-daemon.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const paths = pathsFor(shell, options);
      const pid = await findRunningDaemon(paths);
      if (pid === undefined) {
        return { value: { mesh: paths.mesh, stopped: false }, text: `No daemon of ${paths.mesh} is running.` };
      }
      const hadBroker = isPartOfUp(pid);
      await endDaemon(paths, pid);
      const text = hadBroker
        ? `\`claudemesh up\` has stopped: the daemon of ${paths.mesh}, and the broker that ran with it.`
        : `The daemon of ${paths.mesh} has stopped.`;
      return { value: { mesh: paths.mesh, stopped: true, pid, broker_stopped: hadBroker }, text };
    }),
  );
  examples(command, "claudemesh daemon down");
}

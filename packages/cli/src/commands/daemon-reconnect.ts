// `claudemesh daemon reconnect`: the running daemon tries to connect now, instead of at its next try. Says what came of it;
// exit code 3 where no broker was reached.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { describeBroker, waitUntilSettled } from "../daemon-settling.ts";
import { exitCodes, expectBody } from "../exit-codes.ts";
import { hint } from "../hints.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const paths = pathsFor(shell, options);
      await withDaemon(shell, paths, async (daemon) => expectBody(await daemon.reconnect()));
      const settled = await waitUntilSettled(paths, () => false);
      const { broker } = settled;
      if (broker.state !== "online") process.exitCode = exitCodes.unreachable;
      const { url } = broker;
      return {
        value: { broker },
        text: hint(shell, `${describeBroker(settled)}${url === undefined ? "" : `\nAt      ${url}`}`),
      };
    }),
  );
  examples(command, "claudemesh daemon reconnect", "claudemesh daemon reconnect --mesh acme --json");
}

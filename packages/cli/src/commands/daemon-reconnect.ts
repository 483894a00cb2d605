// `claudemesh daemon reconnect`: the running daemon tries to connect now, instead of at its next try.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { describeBroker } from "../daemon-settling.ts";
import { expectBody } from "../exit-codes.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const paths = pathsFor(shell, options);
      const value = await withDaemon(shell, paths, async (daemon) => expectBody(await daemon.reconnect()));
      const { url } = value.broker;
      return { value, text: `${describeBroker(value.broker)}${url === undefined ? "" : `\nAt      ${url}`}` };
    }),
  );
  examples(command, "claudemesh daemon reconnect", "claudemesh daemon reconnect --mesh acme --json");
}

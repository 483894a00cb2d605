// `claudemesh daemon version`: says so when command and daemon differ.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { callDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const paths = pathsFor(shell, options);
      const daemon = await callDaemon(paths, async (client) => expectBody(await client.version()));
      const differ = daemon.version !== shell.version;
      const advice = differ ? "\nThey differ: run `claudemesh daemon restart` to have one version." : "";
      const text = `command ${shell.version}\ndaemon  ${daemon.version}${advice}`;
      return { value: { command: shell.version, daemon }, text };
    }),
  );
  examples(command, "claudemesh daemon version --json");
}

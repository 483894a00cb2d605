// `claudemesh daemon reload`: the running daemon reads config.toml again, and says what took effect.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { hint } from "../hints.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const paths = pathsFor(shell, options);
      const value = await withDaemon(shell, paths, async (daemon) => expectBody(await daemon.reload()));
      const { applied, needs_restart } = value;
      const lines = [
        applied.length === 0 ? `Nothing in ${paths.config} took effect anew.` : `In effect: ${applied.join(", ")}`,
        ...(needs_restart.length === 0
          ? []
          : [hint(shell, `Only after \`claudemesh daemon restart\`: ${needs_restart.join(", ")}`)]),
      ];
      return { value, text: lines.join("\n") };
    }),
  );
  examples(command, "claudemesh daemon reload", "claudemesh daemon reload --mesh acme --json");
}

// `claudemesh space create`: again is fine.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { hint } from "../hints.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<name>", "name of the space")
    .action((name: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("space.create", { name }));
        return {
          value,
          text: hint(shell, `Space ${name} is there. Write to it with: claudemesh space set ${name} task:1 '{"n":1}'`),
        };
      }),
    );
  examples(command, "claudemesh space create plan");
}

// `claudemesh space policy`: whether a space takes commits without a signature. For owners.
import { Argument, type Command } from "commander";
import { type CommonOptions, examples, run } from "../command.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { withSpace } from "../space/space-access.ts";

export function define(command: Command, shell: Shell): void {
  withSpace(command)
    .addArgument(
      new Argument("<signed-writes>", "whether a commit has to carry its author's signature").choices([
        "optional",
        "required",
      ]),
    )
    .action((space: string, signedWrites: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const input = { space, signedWrites };
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("space.policy", input));
        return { value, text: `Signed writes are ${signedWrites} in ${space}.` };
      }),
    );
  examples(command, "claudemesh space policy plan required");
}

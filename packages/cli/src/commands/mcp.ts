// `claudemesh mcp`: the mesh as tools for a coding agent, by one line in its config.

import { isName } from "@claudemesh/protocol/messages/names";
import { type Command, InvalidArgumentError } from "commander";
import { type Commands, type CommonOptions, examples, run, withMesh } from "../command.ts";
import { pathsFor, type Shell } from "../shell.ts";

export const commands = {
  mcp: defineMcp,
} satisfies Commands;

const readerHelp = `
The daemon keeps how far each reader has come, so that a restart loses no mail and repeats only what was not yet known to
have arrived. Two agents that run at once under one name share one place: give each a name with --as.`;

/** The mesh as tools for a coding agent, by one line in its config. */
function defineMcp(command: Command, shell: Shell): void {
  withMesh(command)
    .option(
      "--as <name>",
      "the reader whose place in the mail is kept (default: from folder and agent program)",
      readName,
    )
    .action((options: CommonOptions & { readonly as?: string }) =>
      run(shell, options, async () => {
        const { serveMcp } = await import("../mcp/server.ts");
        await serveMcp(shell, pathsFor(shell, options), options.as);
        return undefined;
      }),
    );
  examples(
    command,
    "claudemesh mcp --mesh acme",
    "claudemesh mcp --as reviewer",
    "claude mcp add mesh -- npx claudemesh mcp",
  );
  command.addHelpText("after", readerHelp);
}

function readName(text: string): string {
  if (isName(text)) return text;
  throw new InvalidArgumentError("It takes a name: letters, digits, dots, hyphens and underscores, up to 64.");
}

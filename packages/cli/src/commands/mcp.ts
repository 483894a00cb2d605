// `claudemesh mcp`: the mesh as tools for a coding agent, by one line in its config.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const { serveMcp } = await import("../mcp/server.ts");
      await serveMcp(shell, pathsFor(shell, options));
      return undefined;
    }),
  );
  examples(command, "claudemesh mcp --mesh acme", "claude mcp add mesh -- npx claudemesh mcp");
}

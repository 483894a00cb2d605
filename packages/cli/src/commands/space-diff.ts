// `claudemesh space diff`: what a branch has changed since it and another had the same.
import type { Command } from "commander";
import { type CommonOptions, examples, run } from "../command.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { withSpace } from "../space/space-access.ts";

type Options = CommonOptions & { readonly into: string };
type Diff = Readonly<Record<"added" | "removed" | "modified", readonly string[]>>;

export function define(command: Command, shell: Shell): void {
  withSpace(command)
    .argument("<source>", "the branch whose changes are shown")
    .option("--into <target>", "the branch that they would be merged into", "main")
    .action((space: string, source: string, options: Options) =>
      run(shell, options, async () => {
        const input = { space, source, target: options.into };
        const diff = (await asMember(shell, pathsFor(shell, options), (call) => call("space.diff", input))) as Diff;
        const lines = (mark: string, ids: readonly string[]) => ids.map((id) => `${mark} ${id}`);
        const all = [...lines("+", diff.added), ...lines("-", diff.removed), ...lines("~", diff.modified)];
        return { value: diff, text: all.length === 0 ? `${source} has changed nothing.` : all.join("\n") };
      }),
    );
  examples(command, "claudemesh space diff plan draft", "claudemesh space diff plan main --into draft --json");
}

// `claudemesh space list`: entities by prefix, as of one moment. Not a transactional read.
import type { Command } from "commander";
import { examples, run } from "../command.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { type SpaceOptions, withBranch, withSpace } from "../space/space-access.ts";
import { listEntities } from "../space/space-pages.ts";
import { entityTable } from "../space/space-text.ts";

type Options = SpaceOptions & { readonly prefix: string };

export function define(command: Command, shell: Shell): void {
  withBranch(withSpace(command))
    .option("--prefix <prefix>", "only ids that begin with this", "")
    .action((space: string, options: Options) =>
      run(shell, options, async () => {
        const { branch, prefix } = options;
        const query = { space, prefix, ...(branch !== undefined && { branch }) };
        const found = await asMember(shell, pathsFor(shell, options), (call) => listEntities(call, query));
        const text = found.items.length === 0 ? "Nothing there." : entityTable(found.items, shell.columns);
        return { value: found, text };
      }),
    );
  examples(command, "claudemesh space list plan", "claudemesh space list plan --prefix task: --json");
}

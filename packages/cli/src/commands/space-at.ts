// `claudemesh space at`: what a space held after a seq.
import type { Command } from "commander";
import { examples, run } from "../command.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { type Entity, parseSeq, type SpaceOptions, withBranch, withSpace } from "../space/space-access.ts";
import { listEntities } from "../space/space-pages.ts";
import { entityTable } from "../space/space-text.ts";

type Options = SpaceOptions & { readonly prefix: string };
type Found = { readonly seq: number; readonly items: readonly Entity[] };

export function define(command: Command, shell: Shell): void {
  withBranch(
    withSpace(command)
      .argument("<seq>", "the moment", parseSeq)
      .argument("[id...]", "these entities (default: all, or those of --prefix)"),
  )
    .option("--prefix <prefix>", "only ids that begin with this", "")
    .action((space: string, atSeq: number, ids: string[], options: Options) =>
      run(shell, options, async () => {
        const { branch, prefix } = options;
        const moment = { space, atSeq, ...(branch !== undefined && { branch }) };
        const found = (await asMember(shell, pathsFor(shell, options), (call) =>
          ids.length > 0 ? call("space.query", { ...moment, ids }) : listEntities(call, { ...moment, prefix }),
        )) as Found;
        const { seq, items } = found;
        const text = items.length === 0 ? `Nothing there at seq ${seq}.` : entityTable(items, shell.columns);
        return { value: { seq, items }, text };
      }),
    );
  examples(command, "claudemesh space at plan 12", "claudemesh space at plan 12 task:1 task:2 --json");
}

// `claudemesh space get`: one entity, now or as of a seq.
import type { Command } from "commander";
import { examples, run } from "../command.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { type Entity, parseSeq, type SpaceOptions, withBranch, withSpace } from "../space/space-access.ts";
import { describeEntity } from "../space/space-text.ts";

type Options = SpaceOptions & { readonly at?: number };

export function define(command: Command, shell: Shell): void {
  withBranch(withSpace(command).argument("<id>", "id of the entity, such as task:1"))
    .option("--at <seq>", "as it was after this seq", parseSeq)
    .action((space: string, entityId: string, options: Options) =>
      run(shell, options, async () => {
        const { branch, at } = options;
        const input = {
          space,
          entityId,
          ...(branch !== undefined && { branch }),
          ...(at !== undefined && { atSeq: at }),
        };
        const entity = (await asMember(shell, pathsFor(shell, options), (call) =>
          call("space.entity", input),
        )) as Entity;
        return { value: entity, text: describeEntity(entity) };
      }),
    );
  examples(
    command,
    "claudemesh space get plan task:1",
    "claudemesh space get plan task:1 --branch draft --at 12 --json",
  );
}

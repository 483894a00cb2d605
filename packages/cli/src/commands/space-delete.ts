// `claudemesh space delete`: an entity. Its history stays.
import type { Command } from "commander";
import { examples, run } from "../command.ts";
import { type Confirmable, confirm, withYes } from "../confirm.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { type WriteOptions, withCondition, withSpace, writeEntity } from "../space/space-access.ts";

export function define(command: Command, shell: Shell): void {
  withYes(withCondition(withSpace(command).argument("<id>", "id of the entity, such as task:1"))).action(
    (space: string, id: string, options: WriteOptions & Confirmable) =>
      run(shell, options, async () => {
        await confirm(shell, options, `${id} of ${space} will be deleted; only its history will tell what it held.`);
        const accepted = await writeEntity(shell, pathsFor(shell, options), space, { op: "delete", id }, options);
        return { value: { id, ...accepted }, text: `${id} is deleted at seq ${accepted.seq}.` };
      }),
  );
  examples(command, "claudemesh space delete plan task:1", "claudemesh space delete plan task:1 --if-seq 7");
}

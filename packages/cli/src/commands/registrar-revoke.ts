// `claudemesh registrar revoke`: the nonce of an approval is good for nothing any more; what it was spent on stays.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { type Confirmable, confirm, withYes } from "../confirm.ts";
import { registrarOf } from "../registrar-access.ts";
import type { Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withYes(withMesh(command))
    .argument("<approval>", "id of the approval")
    .action((approval: string, options: CommonOptions & Confirmable) =>
      run(shell, options, async () => {
        await confirm(shell, options, `The approval ${approval} will be good for nothing any more.`);
        const value = await registrarOf(shell, options).revoke(approval);
        const spent = value.state === "spent" ? " It had been spent before, and what it registered stays." : "";
        return { value, text: `The approval ${approval} is revoked.${spent}` };
      }),
    );
  examples(command, "claudemesh registrar revoke release-42");
}

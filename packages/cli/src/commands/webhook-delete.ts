// `claudemesh webhook delete`: nothing more is delivered. Again is fine.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { type Confirmable, confirm, withYes } from "../confirm.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withYes(withMesh(command))
    .argument("<id>", "name of the webhook")
    .action((id: string, options: CommonOptions & Confirmable) =>
      run(shell, options, async () => {
        await confirm(shell, options, `The webhook ${id} will be gone, with what it has still to deliver.`);
        const input = { webhook: id };
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("webhook.delete", input));
        return { value, text: `Webhook ${id} is gone, with what it had still to deliver.` };
      }),
    );
  examples(command, "claudemesh webhook delete ci");
}

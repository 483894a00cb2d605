// `claudemesh webhook delete`: nothing more is delivered.
import type { Command } from "commander";
import { webhookName } from "../argument-forms.ts";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { type Confirmable, confirm, withYes } from "../confirm.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withYes(withMesh(command))
    .argument("<id>", "name of the webhook", webhookName)
    .action((id: string, options: CommonOptions & Confirmable) =>
      run(shell, options, async () => {
        await confirm(shell, options, `The webhook ${id} will be gone, with what it has still to deliver.`);
        const value = await asMember(shell, pathsFor(shell, options), async (call) => {
          // A deletion answers the same where there is no such webhook, so that retries succeed; this one says that there is none.
          await call("webhook.deliveries", { webhook: id, limit: 1 });
          return call("webhook.delete", { webhook: id });
        });
        return { value, text: `Webhook ${id} is gone, with what it had still to deliver.` };
      }),
    );
  examples(command, "claudemesh webhook delete ci");
}

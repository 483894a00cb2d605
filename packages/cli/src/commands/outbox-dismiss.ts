// `claudemesh daemon outbox dismiss`: a dead row that needs no more attention. It stays, with who let it go and why.
import type { Command } from "commander";
import { messageId } from "../argument-forms.ts";
import { examples, type Outcome, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = { mesh?: string; json?: boolean; why: string };

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<id>", "outbox id or client id of a dead row", messageId)
    .requiredOption("--why <text>", "why it needs no more attention, for whoever reads the outbox later")
    .action((id: string, options: Options) => run(shell, options, () => dismiss(shell, options, id)));
  examples(command, 'claudemesh daemon outbox dismiss build-42 --why "the topic is gone for good"');
}

async function dismiss(shell: Shell, options: Options, id: string): Promise<Outcome> {
  const dismissed = await withDaemon(shell, pathsFor(shell, options), async (daemon) =>
    expectBody(await daemon.dismiss({ id, why: options.why })),
  );
  const { client_message_id, dismissed_why } = dismissed;
  return { value: dismissed, text: `${client_message_id}  dead, dismissed: ${dismissed_why}` };
}

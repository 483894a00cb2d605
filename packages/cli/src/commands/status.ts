// `claudemesh status`: where a message is, as the daemon knows it. Never one "ok": every stage on a line of its own.
import type { Command } from "commander";
import { messageId } from "../argument-forms.ts";
import { type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { hint } from "../hints.ts";
import { describeMessage } from "../output/message-timeline.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withTimes(withMesh(command))
    .argument("<id>", "client, outbox, inbox or broker id", messageId)
    .action((id: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const facts = await withDaemon(shell, pathsFor(shell, options), async (daemon) =>
          expectBody(await daemon.message(id)),
        );
        return { value: facts, text: describeMessage(facts, shell.columns, (text) => hint(shell, text)) };
      }),
    );
  examples(command, "claudemesh status build-42", "claudemesh status 01JD8Z2V9K3M5N7P9Q1R3S5T7V --json");
}

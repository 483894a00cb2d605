// `claudemesh queue parked`: messages that were delivered too often and wait for somebody to look.
import type { Command } from "commander";
import { queueName } from "../bare-names.ts";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { formatTable } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<queue>", "id of the queue", queueName)
    .action((queue: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const value = await withDaemon(shell, pathsFor(shell, options), async (daemon) =>
          expectBody(await daemon.parked(queue, { limit: 1000 })),
        );
        const rows = value.items.map((item) => [item.broker_message_id, item.body ?? "(data)"]);
        const table = formatTable(["BROKER MESSAGE ID", "MESSAGE"], rows, shell.columns);
        const next = `\nPut back with: claudemesh queue revive ${queue} <broker message id …>`;
        return { value, text: rows.length === 0 ? "Nothing is parked." : table + next };
      }),
    );
  examples(command, "claudemesh queue parked builds");
}

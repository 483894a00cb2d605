// `claudemesh queue parked`: messages that were delivered too often and wait for somebody to look.
import type { Command } from "commander";
import { queueName } from "../bare-names.ts";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { hint } from "../hints.ts";
import { formatTable } from "../output/table.ts";
import { readParked } from "../parked-messages.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<queue>", "id of the queue", queueName)
    .action((queue: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const items = await withDaemon(shell, pathsFor(shell, options), (daemon) => readParked(daemon, queue));
        const rows = items.map((item) => [item.broker_message_id, item.body ?? "(data)"]);
        const table = formatTable(["BROKER MESSAGE ID", "MESSAGE"], rows, shell.columns);
        const next = hint(shell, `\nPut back with: claudemesh queue revive ${queue} <broker message id …>`);
        return { value: { items }, text: rows.length === 0 ? "Nothing is parked." : table + next };
      }),
    );
  examples(command, "claudemesh queue parked builds");
}

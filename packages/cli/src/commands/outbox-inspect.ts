// `claudemesh daemon outbox inspect`: everything about one row but its payload, and the chain of requeues around it.
import type { OutboxItem } from "@claudemesh/client/daemon";
import type { Command } from "commander";
import { messageId } from "../argument-forms.ts";
import { type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { formatField, formatTable } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withTimes(withMesh(command))
    .argument("<id>", "outbox id or client id", messageId)
    .action((id: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const paths = pathsFor(shell, options);
        const found = await withDaemon(shell, paths, async (daemon) => expectBody(await daemon.outboxRow(id)));
        return { value: found, text: describe(found.row, found.chain, shell) };
      }),
    );
  examples(command, "claudemesh daemon outbox inspect 01JD8Z2V9K3M5N7P9Q1R3S5T7V");
}

function describe(row: OutboxItem, chain: readonly OutboxItem[], shell: Shell): string {
  const facts = Object.entries(row)
    .filter(([, value]) => value !== null)
    .map(([column, value]) => [column, formatField(column, value)]);
  const table = formatTable(["COLUMN", "VALUE"], facts, shell.columns);
  if (chain.length < 2) return table;
  return `${table}\nChain: ${chain.map((link) => `${link.client_message_id} (${link.status})`).join(" → ")}`;
}

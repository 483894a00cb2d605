// `claudemesh daemon outbox list`: rows by state, oldest first, one page at a time.
import type { OutboxStatus } from "@claudemesh/protocol/messages/outbox-row";
import { type Command, InvalidArgumentError, Option } from "commander";
import { examples, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { formatTable, formatTime } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

const flags: Readonly<Record<string, OutboxStatus>> = {
  failed: "dead",
  pending: "pending",
  inflight: "inflight",
  done: "done",
  aborted: "aborted",
};

type Options = { mesh?: string; json?: boolean; limit?: number; cursor?: string } & { [flag: string]: unknown };

export function define(command: Command, shell: Shell): void {
  for (const [flag, status] of Object.entries(flags)) {
    const others = Object.keys(flags).filter((other) => other !== flag);
    command.addOption(new Option(`--${flag}`, `only rows that are ${status}`).conflicts(others));
  }
  withMesh(command)
    .option("--limit <n>", "rows, 1–1000", parseLimit)
    .option("--cursor <cursor>", "go on where the last page ended")
    .action((options: Options) => run(shell, options, () => list(shell, options)));
  examples(command, "claudemesh daemon outbox list --failed", "claudemesh daemon outbox list --pending --json");
}

async function list(shell: Shell, options: Options) {
  const chosen = Object.keys(flags).find((flag) => options[flag] === true);
  const status = flags[chosen ?? ""];
  const query = {
    ...(status === undefined ? {} : { status }),
    ...(options.limit === undefined ? {} : { limit: options.limit }),
    ...(options.cursor === undefined ? {} : { cursor: options.cursor }),
  };
  const page = await withDaemon(shell, pathsFor(shell, options), async (daemon) =>
    expectBody(await daemon.outbox(query)),
  );
  const rows = page.items.map((row) => [
    row.client_message_id,
    row.dismissed_at === null ? row.status : "dismissed",
    row.fate,
    String(row.attempts),
    formatTime(row.enqueued_at),
    row.to,
    row.last_error ?? "",
  ]);
  const header = ["CLIENT ID", "STATUS", "FATE", "TRIES", "QUEUED (UTC)", "TO", "LAST ERROR"];
  const more = page.next_cursor === null ? "" : `\nMore: --cursor ${page.next_cursor}`;
  return { value: page, text: formatTable(header, rows, shell.columns, "LAST ERROR") + more };
}

export function parseLimit(text: string): number {
  const limit = /^[0-9]{1,4}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > 1000) throw new InvalidArgumentError("It takes a whole number from 1 to 1000.");
  return limit;
}

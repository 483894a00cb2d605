// `claudemesh inbox`: what has arrived, oldest first, one page at a time.
import type { InboxItem } from "@claudemesh/client/daemon";
import { type Command, InvalidArgumentError } from "commander";
import { examples, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { formatTable, formatTime } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { parseLimit } from "./outbox-list.ts";

type Options = {
  mesh?: string;
  json?: boolean;
  since?: number;
  topic?: string;
  from?: string;
  limit?: number;
  cursor?: string;
};

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .option("--since <time>", "only what arrived at or after this time (ISO 8601 or milliseconds)", parseTime)
    .option("--topic <name>", "only this topic")
    .option("--from <member>", "only this sender, by name or public key")
    .option("--limit <n>", "messages, 1–1000", parseLimit)
    .option("--cursor <cursor>", "go on where the last page ended")
    .action((options: Options) => run(shell, options, () => show(shell, options)));
  examples(command, "claudemesh inbox", "claudemesh inbox --topic builds --json");
}

async function show(shell: Shell, options: Options) {
  const { mesh: _mesh, json: _json, ...query } = options;
  const page = await withDaemon(pathsFor(shell, options), async (daemon) => expectBody(await daemon.inbox(query)));
  const rows = page.items.map((item) => [
    formatTime(item.received_at),
    item.topic === null ? "dm" : `#${item.topic}`,
    item.sender_name ?? item.sender_pubkey.slice(0, 12),
    describeBody(item),
  ]);
  const more = page.next_cursor === null ? "" : `\nMore: --cursor ${page.next_cursor}`;
  const table = formatTable(["RECEIVED (UTC)", "WHERE", "FROM", "MESSAGE"], rows, shell.columns);
  return { value: page, text: rows.length === 0 ? "Nothing has arrived yet." : table + more };
}

function describeBody(item: InboxItem): string {
  if (item.unreadable === true) return "(sealed, and not readable with this member's keys)";
  return item.body ?? `(${item.body_base64?.length ?? 0} base64 characters of data)`;
}

function parseTime(text: string): number {
  const ms = /^[0-9]{1,16}$/.test(text) ? Number(text) : Date.parse(text);
  if (!Number.isSafeInteger(ms)) throw new InvalidArgumentError("It takes a time such as 2030-01-31T12:00:00Z.");
  return ms;
}

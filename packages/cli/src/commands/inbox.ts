// `claudemesh inbox`: what has arrived, oldest first, one page at a time; or what arrives, when it arrives.
import type { InboxQuery } from "@claudemesh/client/daemon";
import { type Command, InvalidArgumentError, Option } from "commander";
import { topicName } from "../bare-names.ts";
import { examples, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { parseWait } from "../duration.ts";
import { expectBody } from "../exit-codes.ts";
import { followInbox, waitForInbox } from "../inbox-arrivals.ts";
import { inboxCells, inboxHeader } from "../output/inbox-line.ts";
import { formatTable } from "../output/table.ts";
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
  follow?: boolean;
  wait?: number;
};

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .option("--since <time>", "only what arrived at or after this time (ISO 8601 or milliseconds)", parseTime)
    .option("--topic <name>", "only this topic", topicName)
    .option("--from <member>", "only this sender, by name or public key")
    .option("--limit <n>", "messages, 1–1000", parseLimit)
    .option("--cursor <cursor>", "go on where the last page ended")
    .addOption(new Option("--follow", "print what arrives, as it arrives, until Ctrl-C").conflicts(["wait", "limit"]))
    .option("--wait <time>", "wait until something arrives, as 30s or 5m, and print it", parseWait)
    .action((options: Options) => run(shell, options, () => read(shell, options)));
  examples(
    command,
    "claudemesh inbox",
    "claudemesh inbox --topic builds --json",
    "claudemesh inbox --wait 30s --json",
    "claudemesh inbox --follow --from @alice",
  );
  command.addHelpText("after", waitingHelp);
}

const waitingHelp = `
--wait and --follow begin with what arrives after the call, or with what --since or --cursor say. When --wait ends
without a message, the exit code is 1 and the JSON is {"items":[],"next_cursor":…}. The next_cursor of a wait is always
there: give it to the next one as --cursor, and nothing that comes between the two is missed. --follow --json prints one
JSON value per message, each on a line of its own.`;

function read(shell: Shell, options: Options) {
  const { mesh: _mesh, json: _json, follow, wait, ...query } = options;
  if (follow === true) return followInbox(shell, options, query);
  return wait === undefined ? show(shell, options, query) : waitForInbox(shell, options, query, wait);
}

async function show(shell: Shell, options: Options, query: InboxQuery) {
  const page = await withDaemon(shell, pathsFor(shell, options), async (daemon) =>
    expectBody(await daemon.inbox(query)),
  );
  const rows = page.items.map(inboxCells);
  const more = page.next_cursor === null ? "" : `\nMore: --cursor ${page.next_cursor}`;
  const table = formatTable(inboxHeader, rows, shell.columns);
  return { value: page, text: rows.length === 0 ? "Nothing has arrived yet." : table + more };
}

function parseTime(text: string): number {
  const ms = /^[0-9]{1,16}$/.test(text) ? Number(text) : Date.parse(text);
  if (!Number.isSafeInteger(ms)) throw new InvalidArgumentError("It takes a time such as 2030-01-31T12:00:00Z.");
  return ms;
}

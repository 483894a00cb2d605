// `claudemesh inbox`: what has arrived, the newest page unless another is asked for; or what arrives, when it arrives.
import type { InboxItem, InboxQuery } from "@claudemesh/client/daemon";
import { type Command, InvalidArgumentError, Option } from "commander";
import { topicName } from "../bare-names.ts";
import { examples, run, withMesh, withTimes } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { parseWait } from "../duration.ts";
import { expectBody } from "../exit-codes.ts";
import { followInbox, waitForInbox } from "../inbox-arrivals.ts";
import {
  type Columns,
  describeCount,
  type PlaceOptions,
  pagesOf,
  placeOf,
  printAll,
  showOnePage,
  withPlaceInList,
} from "../list-pages.ts";
import { inboxCells, inboxHeader } from "../output/inbox-line.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = PlaceOptions & {
  mesh?: string;
  json?: boolean;
  utc?: boolean;
  since?: number;
  topic?: string;
  from?: string;
  unread?: boolean;
  follow?: boolean;
  wait?: number;
};

export function define(command: Command, shell: Shell): void {
  withPlaceInList(withTimes(withMesh(command)), "messages", ["follow", "wait"])
    .option("--since <time>", "only what arrived at or after this time (ISO 8601 or milliseconds)", parseTime)
    .option("--topic <name>", "only this topic", topicName)
    .option("--from <member>", "only this sender, by name or public key")
    .option("--unread", "only what is not marked as read; looking here marks nothing")
    .addOption(new Option("--follow", "print what arrives, as it arrives, until Ctrl-C").conflicts(["wait", "limit"]))
    .option("--wait <time>", "wait until something arrives, as 30s or 5m, and print it", parseWait)
    .action((options: Options) => run(shell, options, () => read(shell, options)));
  examples(
    command,
    "claudemesh inbox",
    "claudemesh inbox --topic builds --json",
    "claudemesh inbox --unread --all",
    "claudemesh inbox --wait 30s --json",
    "claudemesh inbox --follow --from @alice",
  );
  command.addHelpText("after", `${placesHelp}\n${waitingHelp}`);
}

const placesHelp = `
It prints the newest page, with the newest message at the bottom, and says how to see what is older: prev_cursor in the
JSON, for --before. --cursor goes forward from an earlier page's next_cursor.`;

const waitingHelp = `
--wait and --follow begin with what arrives after the call, or with what --since or --cursor say. When --wait ends
without a message, the exit code is 1 and the JSON is {"items":[],"next_cursor":…}. The next_cursor of a wait is always
there: give it to the next one as --cursor, and nothing that comes between the two is missed. --follow --json prints one
JSON value per message, each on a line of its own.`;

function read(shell: Shell, options: Options) {
  const { since, topic, from, unread, limit, cursor, follow, wait } = options;
  const filter: InboxQuery = {
    ...(since !== undefined && { since }),
    ...(topic !== undefined && { topic }),
    ...(from !== undefined && { from }),
    ...(unread !== undefined && { unread }),
  };
  const forward = { ...filter, ...(limit !== undefined && { limit }), ...(cursor !== undefined && { cursor }) };
  if (follow === true) return followInbox(shell, options, forward);
  if (wait !== undefined) return waitForInbox(shell, options, forward, wait);
  return options.all === true ? showAll(shell, options, filter) : show(shell, options, filter);
}

const columns: Columns<InboxItem> = { header: inboxHeader, cells: inboxCells };

async function show(shell: Shell, options: Options, filter: InboxQuery) {
  const page = await withDaemon(shell, pathsFor(shell, options), async (daemon) =>
    expectBody(await daemon.inbox({ ...filter, ...placeOf(options) })),
  );
  const beside = { older: describeCount(page.older), before: page.prev_cursor, newer: page.next_cursor };
  return showOnePage(shell, page, columns, beside, { newer: "--cursor", empty: emptyText(options) });
}

function showAll(shell: Shell, options: Options, filter: InboxQuery) {
  return withDaemon(shell, pathsFor(shell, options), (daemon) => {
    const pages = pagesOf<InboxItem, string>(async ({ limit, place }) => {
      const query = { ...filter, limit, ...(place !== undefined && { cursor: place }) };
      const { items, next_cursor: next } = expectBody(await daemon.inbox(query));
      return { items, next };
    }, options.cursor);
    return printAll(shell, options, pages, columns, emptyText(options));
  });
}

function emptyText({ unread, cursor, before, since, topic, from }: Options): string {
  if (cursor !== undefined || before !== undefined) return "There is nothing more on this side.";
  const isPart = [since, topic, from].some((given) => given !== undefined);
  if (isPart) return "Nothing that arrived matches; without --since, --topic and --from you see all of it.";
  return unread === true ? "Nothing is unread." : "Nothing has arrived yet.";
}

function parseTime(text: string): number {
  const ms = /^[0-9]{1,16}$/.test(text) ? Number(text) : Date.parse(text);
  if (!Number.isSafeInteger(ms)) throw new InvalidArgumentError("It takes a time such as 2030-01-31T12:00:00Z.");
  return ms;
}

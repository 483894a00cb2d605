// `claudemesh inbox` and `claudemesh events`: what has arrived, and what happens as it happens.

import type { DaemonClient, InboxItem, InboxQuery } from "@claudemesh/client/daemon";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Commands, examples, run, withMesh, withTimes } from "../command.ts";
import { withDaemon } from "../daemon/daemon-access.ts";
import { exitCodes, expectBody } from "../exit-codes.ts";
import { parseWait, topicName } from "../input/arguments.ts";
import { eventLine } from "../output/event-line.ts";
import { inboxCells, inboxHeader, inboxLine } from "../output/inbox-line.ts";
import {
  type Columns,
  describeCount,
  type PositionOptions,
  pagesOf,
  positionOf,
  printAll,
  showOnePage,
  withPosition,
} from "../output/list-pages.ts";
import { jsonText } from "../output/printable.ts";
import { formatTable } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { stopSignal } from "../signals.ts";

export const commands = {
  inbox: defineInbox,
  events: defineEvents,
} satisfies Commands;

type InboxOptions = PositionOptions & {
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

/** What has arrived, the newest page unless another is asked for; or what arrives, when it arrives. */
function defineInbox(command: Command, shell: Shell): void {
  withPosition(withTimes(withMesh(command)), "messages", ["follow", "wait"])
    .option("--since <time>", "only what arrived at or after this time (ISO 8601 or milliseconds)", parseTime)
    .option("--topic <name>", "only this topic", topicName)
    .option("--from <member>", "only this sender, by name or public key")
    .option("--unread", "only what is not marked as read; looking here marks nothing")
    .addOption(new Option("--follow", "print what arrives, as it arrives, until Ctrl-C").conflicts(["wait", "limit"]))
    .option("--wait <time>", "wait until something arrives, as 30s or 5m, and print it", parseWait)
    .action((options: InboxOptions) => run(shell, options, () => showInbox(shell, options)));
  examples(
    command,
    "claudemesh inbox",
    "claudemesh inbox --topic builds --json",
    "claudemesh inbox --unread --all",
    "claudemesh inbox --wait 30s --json",
    "claudemesh inbox --follow --from @alice",
  );
  command.addHelpText("after", `${pagesHelp}\n${waitingHelp}`);
}

const pagesHelp = `
It prints the newest page, with the newest message at the bottom, and says how to see what is older: prev_cursor in the
JSON, for --before. --cursor goes forward from an earlier page's next_cursor.`;

const waitingHelp = `
--wait and --follow begin with what arrives after the call, or with what --since or --cursor say. When --wait ends
without a message, the exit code is 1 and the JSON is {"items":[],"next_cursor":…}. The next_cursor of a wait is always
there: give it to the next one as --cursor, and nothing that comes between the two is missed. --follow --json prints one
JSON value per message, each on a line of its own.`;

function showInbox(shell: Shell, options: InboxOptions) {
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
  return options.all === true ? showAll(shell, options, filter) : showPage(shell, options, filter);
}

const columns: Columns<InboxItem> = { header: inboxHeader, cells: inboxCells };

async function showPage(shell: Shell, options: InboxOptions, filter: InboxQuery) {
  const page = await withDaemon(shell, pathsFor(shell, options), async (daemon) =>
    expectBody(await daemon.inbox({ ...filter, ...positionOf(options) })),
  );
  const beside = { older: describeCount(page.older), before: page.prev_cursor, newer: page.next_cursor };
  return showOnePage(shell, page, columns, beside, { newer: "--cursor", empty: emptyText(options) });
}

function showAll(shell: Shell, options: InboxOptions, filter: InboxQuery) {
  return withDaemon(shell, pathsFor(shell, options), (daemon) => {
    const pages = pagesOf<InboxItem, string>(async ({ limit, position }) => {
      const query = { ...filter, limit, ...(position !== undefined && { cursor: position }) };
      const { items, next_cursor: next } = expectBody(await daemon.inbox(query));
      return { items, next };
    }, options.cursor);
    return printAll(shell, options, pages, columns, emptyText(options));
  });
}

function emptyText({ unread, cursor, before, since, topic, from }: InboxOptions): string {
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

type EventsOptions = { mesh?: string; json?: boolean; lastEventId?: string };

/** What happens at the daemon, as it happens. */
function defineEvents(command: Command, shell: Shell): void {
  withMesh(command)
    .option("--last-event-id <id>", "go on behind this event: no message that came since is missed")
    .action((options: EventsOptions) => run(shell, options, () => showEvents(shell, options)));
  examples(command, "claudemesh events", 'claudemesh events --json | grep \'"event":"message"\'');
  command.addHelpText("after", eventsJsonHelp);
}

const eventsJsonHelp = `
It goes on until Ctrl-C, and over restarts of the daemon. --json prints one JSON value per event, each on a line of its
own: {"event":…,"id":…,"data":…}. Events are message, peer_join, peer_leave, broker_status, outbox,
outbox_pressure_high and lagged.`;

function showEvents(shell: Shell, options: EventsOptions): Promise<undefined> {
  return untilStopped(shell, options, async (daemon, signal) => {
    const { lastEventId } = options;
    const position = lastEventId === undefined ? {} : { lastEventId };
    for await (const event of daemon.events({ ...position, signal })) {
      const { kind, id, data } = event;
      shell.out(options.json === true ? jsonText({ event: kind, id, data }) : eventLine(event, shell.columns));
    }
  });
}

type ArrivalOptions = { readonly mesh?: string; readonly json?: boolean };

/** That nothing came is no value to print for people, but one for programs: they go on from its cursor. */
function waitForInbox(shell: Shell, options: ArrivalOptions, query: InboxQuery, timeoutMs: number) {
  return withDaemon(shell, pathsFor(shell, options), async (daemon) => {
    const page = expectBody(await daemon.waitForInbox(query, { timeoutMs }));
    if (page.items.length > 0) {
      return { value: page, text: formatTable(inboxHeader, page.items.map(inboxCells), shell.columns) };
    }
    process.exitCode = exitCodes.failed;
    const goOn = page.next_cursor === null ? "" : `; go on without a gap with --cursor ${page.next_cursor}`;
    shell.err(`claudemesh: Nothing arrived within ${timeoutMs / 1000} s${goOn}.`);
    if (options.json === true) shell.out(jsonText(page));
    return undefined;
  });
}

function followInbox(shell: Shell, options: ArrivalOptions, query: InboxQuery): Promise<undefined> {
  return untilStopped(shell, options, async (daemon, signal) => {
    for await (const item of daemon.followInbox(query, { signal })) {
      shell.out(options.json === true ? jsonText(item) : inboxLine(item, shell.columns));
    }
  });
}

/** Goes on until Ctrl-C, or until the reader of what is printed has gone. */
function untilStopped(
  shell: Shell,
  options: ArrivalOptions,
  use: (daemon: DaemonClient, signal: AbortSignal) => Promise<void>,
): Promise<undefined> {
  const stop = new AbortController();
  void Promise.race([stopSignal(), shell.readerGone]).then(() => stop.abort());
  return withDaemon(shell, pathsFor(shell, options), async (daemon) => {
    await use(daemon, stop.signal);
    return undefined;
  });
}

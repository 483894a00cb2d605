// `claudemesh daemon outbox list`: rows by state, the newest page unless another is asked for.
import type { OutboxItem } from "@claudemesh/client/daemon";
import type { OutboxStatus } from "@claudemesh/protocol/messages/outbox-row";
import { type Command, Option } from "commander";
import { examples, run, withMesh, withTimes } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
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
import type { Cell } from "../output/cell.ts";
import { shortenKeys } from "../output/members.ts";
import { cutToColumns } from "../output/printable.ts";
import { stateCell } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

const flags: Readonly<Record<string, OutboxStatus>> = {
  failed: "dead",
  pending: "pending",
  inflight: "inflight",
  done: "done",
  aborted: "aborted",
};

type Options = PlaceOptions & { mesh?: string; json?: boolean } & { [flag: string]: unknown };

export function define(command: Command, shell: Shell): void {
  for (const [flag, status] of Object.entries(flags)) {
    const others = Object.keys(flags).filter((other) => other !== flag);
    command.addOption(new Option(`--${flag}`, `only rows that are ${status}`).conflicts(others));
  }
  withPlaceInList(withTimes(withMesh(command)), "rows").action((options: Options) =>
    run(shell, options, () => list(shell, options)),
  );
  examples(
    command,
    "claudemesh daemon outbox list",
    "claudemesh daemon outbox list --failed",
    "claudemesh daemon outbox list --pending --json",
  );
}

async function list(shell: Shell, options: Options) {
  const chosen = Object.keys(flags).find((flag) => options[flag] === true);
  const status = flags[chosen ?? ""];
  const filter = status === undefined ? {} : { status };
  const columns = columnsFor(shell);
  return withDaemon(shell, pathsFor(shell, options), async (daemon) => {
    if (options.all !== true) {
      const page = expectBody(await daemon.outbox({ ...filter, ...placeOf(options) }));
      const beside = { older: describeCount(page.older), before: page.prev_cursor, newer: page.next_cursor };
      return showOnePage(shell, page, columns, beside, { newer: "--cursor", empty });
    }
    const pages = pagesOf<OutboxItem, string>(async ({ limit, place }) => {
      const query = { ...filter, limit, ...(place !== undefined && { cursor: place }) };
      const { items, next_cursor: next } = expectBody(await daemon.outbox(query));
      return { items, next };
    }, options.cursor);
    return printAll(shell, options, pages, columns, empty);
  });
}

/** On a terminal the error has a line of its own: ids are copied, and what a cut error leaves out is what a person needs. */
function columnsFor({ columns: width }: Shell): Columns<OutboxItem> {
  const header = ["CLIENT ID", "STATUS", "FATE", "TRIES", "QUEUED", "TO"];
  if (width === undefined) {
    return { header: [...header, "LAST ERROR"], cells: (row) => [...cellsOf(row), row.last_error ?? ""] };
  }
  const roomForId = Math.max(width - otherColumns, narrowestId);
  const isLong = (row: OutboxItem) => row.client_message_id.length > roomForId;
  return {
    header,
    keep: "CLIENT ID",
    cells: (row) => [cutToColumns(row.client_message_id, roomForId), ...cellsOf(row).slice(1)],
    below: (row) => [
      ...(isLong(row) ? [row.client_message_id] : []),
      ...(row.last_error === null ? [] : [row.last_error]),
    ],
  };
}

/** What the others take at least, gaps included. */
const otherColumns = 47;
const narrowestId = 8;

function cellsOf(row: OutboxItem): Cell[] {
  return [
    row.client_message_id,
    stateCell(row.dismissed_at === null ? row.status : "dismissed"),
    row.fate,
    String(row.attempts),
    timeCell(row.enqueued_at),
    shortenKeys(row.to),
  ];
}

const empty = "There are no such rows.";

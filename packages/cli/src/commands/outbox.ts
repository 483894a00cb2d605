// `claudemesh daemon outbox …`: what this host has sent, row by row.

import { readFileSync } from "node:fs";
import type { DaemonClient, OutboxItem } from "@claudemesh/client/daemon";
import { isErrorBody, MeshError } from "@claudemesh/protocol/errors";
import { parseStrictJson, StrictJsonError } from "@claudemesh/protocol/json";
import { limits } from "@claudemesh/protocol/messages/limits";
import type { OutboxStatus } from "@claudemesh/protocol/messages/outbox-row";
import type { PayloadPatch, RequeueRequest } from "@claudemesh/protocol/messages/requeue-request";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Commands, type CommonOptions, examples, type Outcome, run, withMesh, withTimes } from "../command.ts";
import { withDaemon } from "../daemon/daemon-access.ts";
import { expectBody, Refused, WrongUsage } from "../exit-codes.ts";
import { messageId } from "../input/arguments.ts";
import { type Confirmable, confirm, withYes } from "../input/confirm.ts";
import type { Cell } from "../output/cell.ts";
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
import { shortenKeys } from "../output/members.ts";
import { cutToColumns } from "../output/printable.ts";
import { formatField, formatTable, stateCell } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

export const commands = {
  "daemon outbox list": defineList,
  "daemon outbox inspect": defineInspect,
  "daemon outbox requeue": defineRequeue,
  "daemon outbox dismiss": defineDismiss,
  "daemon outbox prune": definePrune,
} satisfies Commands;

const statusFlags: Readonly<Record<string, OutboxStatus>> = {
  failed: "dead",
  pending: "pending",
  inflight: "inflight",
  done: "done",
  aborted: "aborted",
};

type ListOptions = PositionOptions & { mesh?: string; json?: boolean } & { [flag: string]: unknown };

/** Rows by state, the newest page unless another is asked for. */
function defineList(command: Command, shell: Shell): void {
  for (const [flag, status] of Object.entries(statusFlags)) {
    const others = Object.keys(statusFlags).filter((other) => other !== flag);
    command.addOption(new Option(`--${flag}`, `only rows that are ${status}`).conflicts(others));
  }
  withPosition(withTimes(withMesh(command)), "rows").action((options: ListOptions) =>
    run(shell, options, () => listRows(shell, options)),
  );
  examples(
    command,
    "claudemesh daemon outbox list",
    "claudemesh daemon outbox list --failed",
    "claudemesh daemon outbox list --pending --json",
  );
}

async function listRows(shell: Shell, options: ListOptions) {
  const chosen = Object.keys(statusFlags).find((flag) => options[flag] === true);
  const status = statusFlags[chosen ?? ""];
  const filter = status === undefined ? {} : { status };
  const columns = columnsFor(shell);
  return withDaemon(shell, pathsFor(shell, options), async (daemon) => {
    if (options.all !== true) {
      const page = expectBody(await daemon.outbox({ ...filter, ...positionOf(options) }));
      const beside = { older: describeCount(page.older), before: page.prev_cursor, newer: page.next_cursor };
      return showOnePage(shell, page, columns, beside, { newer: "--cursor", empty: noRows });
    }
    const pages = pagesOf<OutboxItem, string>(async ({ limit, position }) => {
      const query = { ...filter, limit, ...(position !== undefined && { cursor: position }) };
      const { items, next_cursor: next } = expectBody(await daemon.outbox(query));
      return { items, next };
    }, options.cursor);
    return printAll(shell, options, pages, columns, noRows);
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

const noRows = "There are no such rows.";

/** Everything about one row but its payload, and the chain of requeues around it. */
function defineInspect(command: Command, shell: Shell): void {
  withTimes(withMesh(command))
    .argument("<id>", "outbox id or client id", messageId)
    .action((id: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const paths = pathsFor(shell, options);
        const inspected = await withDaemon(shell, paths, async (daemon) => expectBody(await daemon.outboxRow(id)));
        return { value: inspected, text: describeRow(inspected.row, inspected.chain, shell) };
      }),
    );
  examples(command, "claudemesh daemon outbox inspect 01JD8Z2V9K3M5N7P9Q1R3S5T7V");
}

function describeRow(row: OutboxItem, chain: readonly OutboxItem[], shell: Shell): string {
  const facts = Object.entries(row)
    .filter(([, value]) => value !== null)
    .map(([column, value]) => [column, formatField(column, value)]);
  const table = formatTable(["COLUMN", "VALUE"], facts, shell.columns);
  if (chain.length < 2) return table;
  return `${table}\nChain: ${chain.map((link) => `${link.client_message_id} (${link.status})`).join(" → ")}`;
}

type RequeueOptions = {
  mesh?: string;
  json?: boolean;
  id?: string;
  newClientId?: string;
  auto?: boolean;
  patchPayload?: string;
  acceptDuplicate?: boolean;
};

/**
 * A stuck row's message under a new id. The daemon decides whether that is safe; here each of its refusals gets the
 * next step.
 */
function defineRequeue(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("[id]", "outbox id or client id of a row that is dead or pending", messageId)
    .option("--id <id>", "the same as the argument", messageId)
    .addOption(new Option("--new-client-id <id>", "the new row's id").conflicts("auto"))
    .option("--auto", "a fresh id for the new row, which is the default")
    .option(
      "--patch-payload <path>",
      "JSON file with any of message, message_base64, meta, priority, reply_to_id; - reads standard input",
    )
    .option("--accept-duplicate", "requeue although the broker may have accepted the old row; both rows record it")
    .action((argument: string | undefined, options: RequeueOptions) => {
      const id = chooseId(command, argument, options.id);
      return run(shell, options, () => requeueRow(shell, options, id));
    });
  examples(
    command,
    "claudemesh daemon outbox requeue 01JD8Z2V9K3M5N7P9Q1R3S5T7V",
    "claudemesh daemon outbox requeue --id build-42 --new-client-id build-42-again",
    "claudemesh daemon outbox requeue build-42 --patch-payload fix.json",
  );
}

function chooseId(command: Command, argument: string | undefined, option: string | undefined): string {
  const id = argument ?? option;
  if (id === undefined) command.error("error: say which row: requeue <id>, or --id <id>");
  if (option !== undefined && option !== id) command.error("error: <id> and --id name different rows");
  return id;
}

async function requeueRow(shell: Shell, options: RequeueOptions, id: string): Promise<Outcome> {
  const request: RequeueRequest = {
    id,
    ...(options.newClientId === undefined ? {} : { new_client_id: options.newClientId }),
    ...(options.patchPayload === undefined ? {} : { patch_payload: readPatchFile(options.patchPayload) }),
    ...(options.acceptDuplicate === true ? { accept_duplicate: true } : {}),
  };
  const requeued = await withDaemon(shell, pathsFor(shell, options), async (daemon) => {
    const answer = await daemon.requeue(request);
    try {
      return expectBody(answer);
    } catch (error) {
      throw error instanceof Refused ? withNextStep(error, id) : error;
    }
  });
  const { old, new: successor } = requeued;
  return {
    value: requeued,
    text: `${old.client_message_id}  aborted\n${successor.client_message_id}  queued in its place`,
  };
}

/** What the fields mean is the daemon's to judge; here it only has to be one JSON object. */
function readPatchFile(path: string): PayloadPatch {
  const value = readJson(path);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as PayloadPatch;
  throw new MeshError("invalid_request", "The patch is one JSON object.", { field: "patch_payload" });
}

function readJson(path: string): unknown {
  const bytes = readFileSync(path === "-" ? 0 : path);
  try {
    return parseStrictJson(bytes, { maxDepth: limits.jsonDepth });
  } catch (error) {
    if (!(error instanceof StrictJsonError)) throw error;
    const message = `The patch in ${path} is no JSON that can be used: ${error.reason} at offset ${error.offset}.`;
    throw new MeshError("invalid_request", message, { field: "patch_payload" }, error);
  }
}

function withNextStep(refusal: Refused, id: string): Refused {
  const { status, body } = refusal;
  const next = nextStep(body, id);
  return next === undefined ? refusal : new Refused(status, { ...body, message: `${body.message}\n${next}` }, refusal);
}

function nextStep(body: Refused["body"], id: string): string | undefined {
  switch (body.error) {
    case "not_requeueable": {
      const { client_message_id: successor } = (body.successor ?? {}) as { client_message_id?: unknown };
      return typeof successor === "string"
        ? `${successor} has taken its place: look with \`claudemesh status ${successor}\`.`
        : `See where it is with \`claudemesh status ${id}\`.`;
    }
    case "already_accepted":
      return `Nothing is left to do: \`claudemesh status ${id}\` shows where it is.`;
    case "fate_unknown":
      return "Try again when the broker is back, or add --accept-duplicate if arriving twice does no harm.";
    case "client_id_consumed":
      return "Choose another --new-client-id, or leave it out and get a fresh one.";
    case "payload_unreadable":
      return "Put message or message_base64 into the patch.";
    case "not_found":
      return "`claudemesh daemon outbox list` shows the rows that there are.";
    default:
      return undefined;
  }
}

type DismissOptions = { mesh?: string; json?: boolean; why: string; all?: boolean };

/** Dead rows that need no more attention. They stay, with when they were let go and why. */
function defineDismiss(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("[id]", "outbox id or client id of a dead row", messageId)
    .option("--all", "every dead row, and of a member that was removed from the mesh also those that wait")
    .requiredOption("--why <text>", "why it needs no more attention, for whoever reads the outbox later")
    .action((id: string | undefined, options: DismissOptions) =>
      run(shell, options, () => dismissRows(shell, options, id)),
    );
  examples(
    command,
    'claudemesh daemon outbox dismiss build-42 --why "the topic is gone for good"',
    'claudemesh daemon outbox dismiss --all --why "this host was removed from the mesh"',
  );
}

async function dismissRows(shell: Shell, options: DismissOptions, id: string | undefined): Promise<Outcome> {
  const { why, all = false } = options;
  if ((id === undefined) !== all) throw new WrongUsage("Name one row, or give --all.");
  return withDaemon(shell, pathsFor(shell, options), async (daemon) => {
    if (id === undefined) {
      const dismissed = await dismissAll(daemon, why);
      return {
        value: { dismissed },
        text: `${dismissed} ${dismissed === 1 ? "row was" : "rows were"} dismissed: ${why}`,
      };
    }
    const value = expectBody(await daemon.dismiss({ id, why }));
    return { value, text: `${value.client_message_id}  dead, dismissed: ${value.dismissed_why}` };
  });
}

async function dismissAll(daemon: DaemonClient, why: string): Promise<number> {
  const { membership_ended_at: endedAt } = expectBody(await daemon.version());
  let dismissed = 0;
  for (const status of endedAt === undefined ? (["dead"] as const) : (["dead", "pending"] as const)) {
    const pages = pagesOf<OutboxItem, string>(async ({ limit, position }) => {
      const query = { status, limit, ...(position !== undefined && { cursor: position }) };
      const { items, next_cursor: next } = expectBody(await daemon.outbox(query));
      return { items, next };
    }, undefined);
    for await (const items of pages) {
      for (const { id } of items.filter((item) => item.dismissed_at === null)) {
        const answer = await daemon.dismiss({ id, why });
        // It has moved on since it was listed.
        if (isErrorBody(answer.body) && answer.body.error === "not_dismissible") continue;
        expectBody(answer);
        dismissed++;
      }
    }
  }
  return dismissed;
}

type PruneOptions = Confirmable & { mesh?: string; json?: boolean; olderThanDays: number };

/** Done rows become tombstones, as often as it takes for all of them. */
function definePrune(command: Command, shell: Shell): void {
  withYes(withMesh(command))
    .requiredOption("--older-than-days <n>", "rows that were done more than so many days ago", parseDays)
    .action((options: PruneOptions) => run(shell, options, () => pruneRows(shell, options)));
  examples(command, "claudemesh daemon outbox prune --older-than-days 7");
}

async function pruneRows(shell: Shell, options: PruneOptions): Promise<Outcome> {
  await confirm(
    shell,
    options,
    `Rows done more than ${options.olderThanDays} days ago will lose what their messages said.`,
  );
  const request = { older_than_days: options.olderThanDays };
  const tombstones = await withDaemon(shell, pathsFor(shell, options), async (daemon) => {
    let total = 0;
    let more = true;
    while (more) {
      const pruned = expectBody(await daemon.prune(request));
      total += pruned.tombstones_made;
      // A daemon that makes none has nothing more, whatever it says.
      more = pruned.more && pruned.tombstones_made > 0;
    }
    return total;
  });
  const rows = tombstones === 1 ? "1 row is a tombstone now" : `${tombstones} rows are tombstones now`;
  return {
    value: { tombstones_made: tombstones },
    text: `${rows}; ids stay taken, and retries are answered as before.`,
  };
}

function parseDays(text: string): number {
  const days = /^[0-9]{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(days <= 36_500)) throw new InvalidArgumentError("It takes a whole number of days from 0 to 36500.");
  return days;
}

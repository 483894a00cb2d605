// Lists that may be long, as commands show them: the newest page unless another position is asked for, with the way to what is
// older; or all of it, page by page, so that no length of it needs more memory.
import { once } from "node:events";
import type { Writable } from "node:stream";
import { isUlid } from "@claudemesh/protocol/ids";
import { limits } from "@claudemesh/protocol/messages/limits";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Outcome } from "../command.ts";
import type { Shell } from "../shell.ts";
import type { Cell } from "./cell.ts";
import { jsonText, neutraliseLine } from "./printable.ts";
import { formatTable } from "./table.ts";

export type PositionOptions = {
  readonly limit?: number;
  readonly cursor?: string;
  readonly before?: string;
  readonly all?: boolean;
};

/** How one kind of item is shown. */
export type Columns<Item> = {
  readonly header: readonly string[];
  readonly cells: (item: Item) => readonly Cell[];
  readonly keep?: string;
  /** What is said whole on lines of its own below an item. */
  readonly below?: (item: Item) => readonly string[];
};

/** What a page says about what is beside it; the positions are as its options take them. */
export type Beside = {
  /** How many are older, in words. */
  readonly older: string;
  readonly before: string | number | null | undefined;
  readonly newer: string | number | null;
};

export function withPosition(command: Command, what: string, others: readonly string[] = []): Command {
  return command
    .option("--limit <n>", `${what} in a page, 1–1000 (default: ${limits.pageItemsDefault})`, parseLimit)
    .option("--cursor <cursor>", "go on where an earlier page ended, towards what is newer")
    .addOption(
      new Option("--before <cursor>", "the page before an earlier one, towards what is older")
        .argParser(parseBefore)
        .conflicts(["cursor", ...others]),
    )
    .addOption(allOption([...others]));
}

export function allOption(others: readonly string[]): Option {
  return new Option("--all", "all of it, oldest first; with --json one value per line").conflicts([
    "before",
    "limit",
    ...others,
  ]);
}

/** The position that a daemon is asked for where not everything is wanted. */
export function positionOf({ limit, cursor, before }: PositionOptions) {
  const position = cursor !== undefined ? { cursor } : before !== undefined ? { before } : { newest: true };
  return { ...position, ...(limit !== undefined && { limit }) };
}

export function parseLimit(text: string): number {
  const limit = /^[0-9]{1,4}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= limits.pageItems) return limit;
  throw new InvalidArgumentError(`It takes a whole number from 1 to ${limits.pageItems}.`);
}

function parseBefore(text: string): string {
  if (isUlid(text)) return text;
  throw new InvalidArgumentError("It takes the cursor that an earlier page named.");
}

export function showOnePage<Item>(
  shell: Shell,
  value: { readonly items: readonly Item[] },
  columns: Columns<Item>,
  beside: Beside,
  flags: { readonly newer: string; readonly empty: string },
): Outcome {
  const table = formatItems(shell, value.items, columns);
  const lines = value.items.length === 0 ? [flags.empty] : [table];
  if (beside.before != null) lines.push(`${beside.older} older: --before ${beside.before}, or --all`);
  if (beside.newer !== null) lines.push(`More: ${flags.newer} ${beside.newer}`);
  return { value, text: lines.join("\n") };
}

/** The daemon's count ends at its limit, and the true number may be larger. */
export function describeCount(older: number | undefined): string {
  return older === limits.countedRows ? `At least ${older}` : String(older ?? 0);
}

const pageOfAll = 200;

/** Reads forward until there is no more. */
export async function* pagesOf<Item, Position>(
  read: (page: { readonly limit: number; readonly position: Position | undefined }) => Promise<{
    readonly items: readonly Item[];
    readonly next: Position | null;
  }>,
  from: Position | undefined,
): AsyncGenerator<readonly Item[]> {
  let position: Position | null | undefined = from;
  do {
    const page = await read({ limit: pageOfAll, position });
    yield page.items;
    position = page.next;
  } while (position !== null);
}

/** Prints a page before it asks for the next, at the pace of its reader; ends when that reader has gone. */
export async function printAll<Item>(
  shell: Shell,
  options: { readonly json?: boolean },
  pages: AsyncIterable<readonly Item[]>,
  columns: Columns<Item>,
  empty: string,
): Promise<undefined> {
  let printed = 0;
  let isGone = false;
  const gone = shell.readerGone.then(() => {
    isGone = true;
  });
  for await (const items of pages) {
    if (options.json === true) for (const item of items) shell.out(jsonText(item));
    else if (items.length > 0) shell.out(formatRows(shell, items, columns, printed === 0));
    printed += items.length;
    const stream = shell.raw("stdout") as Writable;
    if (stream.writableNeedDrain) await Promise.race([once(stream, "drain"), gone]);
    if (isGone) return undefined;
  }
  if (printed === 0 && options.json !== true) shell.out(empty);
  return undefined;
}

function formatRows<Item>(shell: Shell, items: readonly Item[], columns: Columns<Item>, isFirst: boolean): string {
  const table = formatItems(shell, items, columns);
  // Cells have no line feeds, so that the header is one line.
  return isFirst ? table : table.slice(table.indexOf("\n") + 1);
}

function formatItems<Item>(
  shell: Shell,
  items: readonly Item[],
  { header, cells, keep, below }: Columns<Item>,
): string {
  const table = formatTable(header, items.map(cells), shell.columns, keep);
  if (below === undefined) return table;
  const [head = "", ...rows] = table.split("\n");
  const lines = items.flatMap((item, index) => [
    rows[index] ?? "",
    ...below(item).map((text) => `  ${neutraliseLine(text)}`),
  ]);
  return [head, ...lines].join("\n");
}

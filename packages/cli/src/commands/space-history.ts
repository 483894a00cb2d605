// `claudemesh space log`, `at` and `watch`: what was committed to a space, what it held then, and what changes now.

import { type Command, Option } from "commander";
import { type Commands, type CommonOptions, examples, run, withTimes } from "../command.ts";
import { asMember, readNames } from "../mesh/member.ts";
import type { Cell } from "../output/cell.ts";
import { allOption, type Columns, pagesOf, parseLimit, printAll, showOnePage } from "../output/list-pages.ts";
import type { NameOf } from "../output/members.ts";
import { cutToColumns, jsonText, neutraliseLine } from "../output/printable.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { stopSignal } from "../signals.ts";
import { type Entity, parseSeq, type SpaceOptions, withBranch, withSpace } from "../space/space-access.ts";
import { listEntities } from "../space/space-pages.ts";
import { branchName, describeDocument, entityTable } from "../space/space-text.ts";

export const commands = {
  "space log": defineLog,
  "space at": defineAt,
  "space watch": defineWatch,
} satisfies Commands;

type LogOptions = CommonOptions & {
  readonly after?: number;
  readonly before?: number;
  readonly limit?: number;
  readonly all?: boolean;
};
type LogEntry = {
  readonly seq: number;
  readonly branch: string;
  readonly author: string;
  readonly committedAt: number;
  readonly original: {
    readonly cmd?: string;
    readonly operations?: readonly { readonly op: string; readonly id: string }[];
    readonly sends?: readonly unknown[];
  };
};
type LogPage = {
  readonly items: readonly LogEntry[];
  readonly nextAfter: number | null;
  readonly prevBefore?: number | null;
};

/** What was committed, by whom and when, the newest page unless another is asked for. */
function defineLog(command: Command, shell: Shell): void {
  withTimes(withSpace(command))
    .option("--after <seq>", "what came after this seq, towards what is newer", parseSeq)
    .addOption(
      new Option("--before <seq>", "what came before this seq, towards what is older")
        .argParser(parseSeq)
        .conflicts("after"),
    )
    .addOption(allOption([]))
    .option("--limit <n>", "commits in a page, 1–1000 (default: 100)", parseLimit)
    .action((space: string, options: LogOptions) => run(shell, options, () => log(shell, space, options)));
  examples(
    command,
    "claudemesh space log plan",
    "claudemesh space log plan --before 120",
    "claudemesh space log plan --after 120 --limit 20 --json",
  );
}

async function log(shell: Shell, space: string, { after, before, limit, ...options }: LogOptions) {
  const paths = pathsFor(shell, options);
  const columns = columnsWith(await readNames(shell, paths, options));
  return asMember(shell, paths, async (call) => {
    const read = async (position: object) => (await call("space.log", { space, ...position })) as LogPage;
    if (options.all === true) {
      const pages = pagesOf<LogEntry, number>(async (page) => {
        const { items, nextAfter } = await read({ after: page.position ?? 0, limit: page.limit });
        return { items, next: nextAfter };
      }, after);
      return printAll(shell, options, pages, columns, empty);
    }
    const position = after !== undefined ? { after } : before !== undefined ? { before } : { newest: true };
    const page = await read({ ...position, ...(limit !== undefined && { limit }) });
    const { nextAfter, prevBefore } = page;
    // Every seq from 1 on is a commit.
    const beside = { older: String((prevBefore ?? 1) - 1), before: prevBefore, newer: nextAfter };
    return showOnePage(shell, page, columns, beside, {
      newer: "--after",
      empty: after === undefined && before === undefined ? empty : nothingMore,
    });
  });
}

function columnsWith(nameOf: NameOf): Columns<LogEntry> {
  const header = ["SEQ", "COMMITTED", "BRANCH", "AUTHOR", "WHAT"];
  return { header, cells: (entry) => describeEntry(entry, nameOf) };
}

const empty = "Nothing was committed.";

const nothingMore = "There is nothing more on this side.";

function describeEntry({ seq, branch, author, committedAt, original }: LogEntry, nameOf: NameOf): Cell[] {
  const { cmd, operations = [], sends = [] } = original;
  const what = cmd ?? operations.map(({ op, id }) => `${op} ${id}`).join(", ");
  const sent = sends.length === 0 ? "" : `, ${sends.length} sent`;
  return [String(seq), timeCell(committedAt), branchName(branch), nameOf(author), `${what}${sent}`];
}

type AtOptions = SpaceOptions & { readonly prefix: string };
type EntitiesAt = { readonly seq: number; readonly items: readonly Entity[] };

/** What a space held after a seq. */
function defineAt(command: Command, shell: Shell): void {
  withBranch(
    withSpace(command)
      .argument("<seq>", "the moment", parseSeq)
      .argument("[id...]", "these entities (default: all, or those of --prefix)"),
  )
    .option("--prefix <prefix>", "only ids that begin with this", "")
    .action((space: string, atSeq: number, ids: string[], options: AtOptions) =>
      run(shell, options, async () => {
        const { branch, prefix } = options;
        const moment = { space, atSeq, ...(branch !== undefined && { branch }) };
        const entities = (await asMember(shell, pathsFor(shell, options), (call) =>
          ids.length > 0 ? call("space.query", { ...moment, ids }) : listEntities(call, { ...moment, prefix }),
        )) as EntitiesAt;
        const { seq, items } = entities;
        const text = items.length === 0 ? `Nothing there at seq ${seq}.` : entityTable(items, shell.columns);
        return { value: { seq, items }, text };
      }),
    );
  examples(command, "claudemesh space at plan 12", "claudemesh space at plan 12 task:1 task:2 --json");
}

type WatchOptions = SpaceOptions & { readonly prefix?: string[]; readonly since?: number };

/** What changes in a space, as it changes. */
function defineWatch(command: Command, shell: Shell): void {
  withBranch(withSpace(command).argument("[id...]", "these entities (default: all, or those of --prefix)"))
    .option("--prefix <prefix...>", "all whose ids begin with one of these")
    .option("--since <seq>", "begin with what is newer than this seq; 0: with everything", parseSeq)
    .action((space: string, ids: string[], options: WatchOptions) =>
      run(shell, options, () => watch(shell, space, ids, options)),
    );
  examples(
    command,
    "claudemesh space watch plan",
    "claudemesh space watch plan --prefix task: note: --since 0",
    "claudemesh space watch plan task:1 --json",
  );
  command.addHelpText("after", watchJsonHelp);
}

const watchJsonHelp = `
It goes on until Ctrl-C, and over restarts of the broker. It tells the latest state: of changes that come fast, the last.
--json prints one JSON value per entity, each on a line of its own: {"branch":…,"id":…,"seq":…,"document":…}, or
"deleted":true in place of the document.`;

async function watch(shell: Shell, space: string, ids: string[], options: WatchOptions): Promise<undefined> {
  const stop = new AbortController();
  void Promise.race([stopSignal(), shell.readerGone]).then(() => stop.abort());
  const prefixes = options.prefix ?? (ids.length === 0 ? [""] : []);
  const follow = { space, branch: options.branch, ids, prefixes, seenSeq: options.since };
  const { followSpace } = await import("../space/follow-space.ts");
  await followSpace(pathsFor(shell, options), `claudemesh-cli/${shell.version}`, follow, {
    onFrame: ({ upserts }) => {
      for (const upsert of upserts) {
        shell.out(options.json === true ? jsonText(upsert) : entityLine(upsert as Entity, shell.columns));
      }
    },
    signal: stop.signal,
  });
  return undefined;
}

function entityLine({ seq, id, document }: Entity, columns: number | undefined): string {
  const line = neutraliseLine(`${String(seq).padEnd(6)}  ${id}  ${describeDocument(document)}`);
  return columns === undefined ? line : cutToColumns(line, Math.max(columns, 1));
}

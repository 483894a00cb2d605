// `claudemesh space log`: what was committed, by whom and when, the newest page unless another is asked for.
import { type Command, Option } from "commander";
import { type CommonOptions, examples, run, withTimes } from "../command.ts";
import { allOption, type Columns, pagesOf, parseLimit, printAll, showOnePage } from "../list-pages.ts";
import { asMember } from "../member.ts";
import { readNames } from "../member-names.ts";
import type { Cell } from "../output/cell.ts";
import type { NameOf } from "../output/members.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { parseSeq, withSpace } from "../space/space-access.ts";
import { branchName } from "../space/space-text.ts";

type Options = CommonOptions & {
  readonly after?: number;
  readonly before?: number;
  readonly limit?: number;
  readonly all?: boolean;
};
type Entry = {
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
type Page = {
  readonly items: readonly Entry[];
  readonly nextAfter: number | null;
  readonly prevBefore?: number | null;
};

export function define(command: Command, shell: Shell): void {
  withTimes(withSpace(command))
    .option("--after <seq>", "what came after this seq, towards what is newer", parseSeq)
    .addOption(
      new Option("--before <seq>", "what came before this seq, towards what is older")
        .argParser(parseSeq)
        .conflicts("after"),
    )
    .addOption(allOption([]))
    .option("--limit <n>", "commits in a page, 1–1000 (default: 100)", parseLimit)
    .action((space: string, options: Options) => run(shell, options, () => log(shell, space, options)));
  examples(
    command,
    "claudemesh space log plan",
    "claudemesh space log plan --before 120",
    "claudemesh space log plan --after 120 --limit 20 --json",
  );
}

async function log(shell: Shell, space: string, { after, before, limit, ...options }: Options) {
  const paths = pathsFor(shell, options);
  const columns = columnsWith(await readNames(shell, paths, options));
  return asMember(shell, paths, async (call) => {
    const read = async (place: object) => (await call("space.log", { space, ...place })) as Page;
    if (options.all === true) {
      const pages = pagesOf<Entry, number>(async (page) => {
        const { items, nextAfter } = await read({ after: page.place ?? 0, limit: page.limit });
        return { items, next: nextAfter };
      }, after);
      return printAll(shell, options, pages, columns, empty);
    }
    const place = after !== undefined ? { after } : before !== undefined ? { before } : { newest: true };
    const page = await read({ ...place, ...(limit !== undefined && { limit }) });
    const { nextAfter, prevBefore } = page;
    // Every seq from 1 on is a commit.
    const beside = { older: String((prevBefore ?? 1) - 1), before: prevBefore, newer: nextAfter };
    return showOnePage(shell, page, columns, beside, {
      newer: "--after",
      empty: after === undefined && before === undefined ? empty : nothingMore,
    });
  });
}

function columnsWith(nameOf: NameOf): Columns<Entry> {
  const header = ["SEQ", "COMMITTED", "BRANCH", "AUTHOR", "WHAT"];
  return { header, cells: (entry) => describeEntry(entry, nameOf) };
}

const empty = "Nothing was committed.";

const nothingMore = "There is nothing more on this side.";

function describeEntry({ seq, branch, author, committedAt, original }: Entry, nameOf: NameOf): Cell[] {
  const { cmd, operations = [], sends = [] } = original;
  const what = cmd ?? operations.map(({ op, id }) => `${op} ${id}`).join(", ");
  const told = sends.length === 0 ? "" : `, ${sends.length} sent`;
  return [String(seq), timeCell(committedAt), branchName(branch), nameOf(author), `${what}${told}`];
}

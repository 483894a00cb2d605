// `claudemesh space log`: what was committed, by whom and when, oldest first, one page at a time.
import type { Command } from "commander";
import { type CommonOptions, examples, run } from "../command.ts";
import { asMember } from "../member.ts";
import { formatTable, formatTime } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { parseSeq, withSpace } from "../space/space-access.ts";
import { branchName } from "../space/space-text.ts";
import { parseLimit } from "./outbox-list.ts";

type Options = CommonOptions & { readonly after?: number; readonly limit?: number };
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
type Page = { readonly items: readonly Entry[]; readonly nextAfter: number | null };

export function define(command: Command, shell: Shell): void {
  withSpace(command)
    .option("--after <seq>", "only what came after this seq", parseSeq)
    .option("--limit <n>", "commits, 1–1000", parseLimit)
    .action((space: string, options: Options) =>
      run(shell, options, async () => {
        const { after, limit } = options;
        const input = { space, ...(after !== undefined && { after }), ...(limit !== undefined && { limit }) };
        const page = (await asMember(shell, pathsFor(shell, options), (call) => call("space.log", input))) as Page;
        const rows = page.items.map(describeEntry);
        const more = page.nextAfter === null ? "" : `\nMore: --after ${page.nextAfter}`;
        const table = formatTable(["SEQ", "COMMITTED (UTC)", "BRANCH", "AUTHOR", "WHAT"], rows, shell.columns);
        return { value: page, text: rows.length === 0 ? "Nothing was committed." : table + more };
      }),
    );
  examples(command, "claudemesh space log plan", "claudemesh space log plan --after 120 --limit 20 --json");
}

function describeEntry({ seq, branch, author, committedAt, original }: Entry): string[] {
  const { cmd, operations = [], sends = [] } = original;
  const what = cmd ?? operations.map(({ op, id }) => `${op} ${id}`).join(", ");
  const told = sends.length === 0 ? "" : `, ${sends.length} sent`;
  return [String(seq), formatTime(committedAt), branchName(branch), author.slice(0, 12), `${what}${told}`];
}

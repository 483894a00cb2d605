// `claudemesh space watch`: what changes in a space, as it changes.
import type { Command } from "commander";
import { examples, run } from "../command.ts";
import { cutToColumns, jsonText, neutraliseLine } from "../output/printable.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { stopSignal } from "../signals.ts";
import { followSpace } from "../space/follow-space.ts";
import { type Entity, parseSeq, type SpaceOptions, withBranch, withSpace } from "../space/space-access.ts";
import { describeDocument } from "../space/space-text.ts";

type Options = SpaceOptions & { readonly prefix?: string[]; readonly since?: number };

export function define(command: Command, shell: Shell): void {
  withBranch(withSpace(command).argument("[id...]", "these entities (default: all, or those of --prefix)"))
    .option("--prefix <prefix...>", "all whose ids begin with one of these")
    .option("--since <seq>", "begin with what is newer than this seq; 0: with everything", parseSeq)
    .action((space: string, ids: string[], options: Options) =>
      run(shell, options, () => watch(shell, space, ids, options)),
    );
  examples(
    command,
    "claudemesh space watch plan",
    "claudemesh space watch plan --prefix task: note: --since 0",
    "claudemesh space watch plan task:1 --json",
  );
  command.addHelpText("after", jsonHelp);
}

const jsonHelp = `
It goes on until Ctrl-C, and over restarts of the broker. It tells the latest state: of changes that come fast, the last.
--json prints one JSON value per entity, each on a line of its own: {"branch":…,"id":…,"seq":…,"document":…}, or
"deleted":true in place of the document.`;

async function watch(shell: Shell, space: string, ids: string[], options: Options): Promise<undefined> {
  const stop = new AbortController();
  void Promise.race([stopSignal(), shell.readerGone]).then(() => stop.abort());
  const prefixes = options.prefix ?? (ids.length === 0 ? [""] : []);
  const follow = { space, branch: options.branch, ids, prefixes, seenSeq: options.since };
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

// `claudemesh daemon logs`: what the daemon has logged, for people or word for word. Reads the file; the daemon need
// not be running.
import { setTimeout as sleep } from "node:timers/promises";
import { MeshError } from "@claudemesh/protocol/errors";
import { type Command, InvalidArgumentError } from "commander";
import { examples, run, withMesh, withTimes } from "../command.ts";
import { openLog } from "../log-file-reader.ts";
import { formatLogLine } from "../output/log-line.ts";
import { escapeUnsafe } from "../output/printable.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { stopSignal } from "../signals.ts";

type Options = { mesh?: string; json?: boolean; follow?: boolean; lines: number };

const pollMs = 200;

export function define(command: Command, shell: Shell): void {
  withTimes(withMesh(command))
    .option("--follow", "go on with what comes, until Ctrl-C")
    .option("--lines <n>", "how many of the last lines, up to 100000", parseLines, 50)
    .action((options: Options) => run(shell, options, () => show(shell, options)));
  examples(
    command,
    "claudemesh daemon logs",
    "claudemesh daemon logs --follow --lines 10",
    "claudemesh daemon logs --json --lines 1000 | grep drain",
  );
}

async function show(shell: Shell, options: Options): Promise<undefined> {
  const paths = pathsFor(shell, options);
  const log = openLog(paths.log, options.lines);
  if (log === undefined) {
    throw new MeshError("not_found", `There is no ${paths.log} yet; start the daemon with \`claudemesh daemon up\`.`);
  }
  const print = (lines: readonly string[]) => {
    if (lines.length > 0) shell.out(lines.map(options.json === true ? escapeUnsafe : formatLogLine).join("\n"));
  };
  print(log.lines);
  if (options.follow === true) await follow(shell, log.follow, print);
  log.follow.close();
  return undefined;
}

async function follow(
  shell: Shell,
  log: { readonly next: () => string[] },
  print: (lines: readonly string[]) => void,
): Promise<void> {
  let over = false;
  void Promise.race([stopSignal(), shell.readerGone]).then(() => {
    over = true;
  });
  while (!over) {
    print(log.next());
    await sleep(pollMs);
  }
}

function parseLines(text: string): number {
  const lines = /^[0-9]{1,6}$/.test(text) ? Number(text) : -1;
  if (lines < 0 || lines > 100_000) throw new InvalidArgumentError("It takes a whole number from 0 to 100000.");
  return lines;
}

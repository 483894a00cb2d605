// `claudemesh daemon outbox prune`: done rows become tombstones, as often as it takes for all of them.
import { type Command, InvalidArgumentError } from "commander";
import { examples, type Outcome, run, withMesh } from "../command.ts";
import { type Confirmable, confirm, withYes } from "../confirm.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = Confirmable & { mesh?: string; json?: boolean; olderThanDays: number };

export function define(command: Command, shell: Shell): void {
  withYes(withMesh(command))
    .requiredOption("--older-than-days <n>", "rows that were done more than so many days ago", parseDays)
    .action((options: Options) => run(shell, options, () => prune(shell, options)));
  examples(command, "claudemesh daemon outbox prune --older-than-days 7");
}

async function prune(shell: Shell, options: Options): Promise<Outcome> {
  await confirm(
    shell,
    options,
    `Rows done more than ${options.olderThanDays} days ago will lose what their messages said.`,
  );
  const request = { older_than_days: options.olderThanDays };
  const made = await withDaemon(shell, pathsFor(shell, options), async (daemon) => {
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
  const rows = made === 1 ? "1 row is a tombstone now" : `${made} rows are tombstones now`;
  return { value: { tombstones_made: made }, text: `${rows}; ids stay taken, and retries are answered as before.` };
}

function parseDays(text: string): number {
  const days = /^[0-9]{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(days <= 36_500)) throw new InvalidArgumentError("It takes a whole number of days from 0 to 36500.");
  return days;
}

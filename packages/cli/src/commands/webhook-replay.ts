// `claudemesh webhook replay`: parked or named deliveries, or all of history from somewhere on, once more. Receivers see
// the same message ids as before.
import { type Command, InvalidArgumentError, Option } from "commander";
import { examples, run, withMesh } from "../command.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { parseCount } from "./queue-create.ts";

type Options = { mesh?: string; json?: boolean; historyId?: number[]; from?: number };

export function define(command: Command, shell: Shell): void {
  const historyIds = new Option("--history-id <id...>", "these deliveries, whatever became of them");
  withMesh(command)
    .argument("<id>", "name of the webhook")
    .addOption(historyIds.argParser(collectHistoryIds).conflicts("from"))
    .option("--from <history-id>", "everything from this message on, before new ones", parseCount)
    .action((id: string, options: Options) => run(shell, options, () => replay(shell, id, options)));
  examples(
    command,
    "claudemesh webhook replay ci                      what is parked",
    "claudemesh webhook replay ci --history-id 17 18",
    "claudemesh webhook replay ci --from 1             everything there ever was",
  );
}

async function replay(shell: Shell, id: string, { historyId, from, ...options }: Options) {
  const input = {
    webhook: id,
    ...(historyId === undefined ? {} : { history_ids: historyId }),
    ...(from === undefined ? {} : { from_history_id: from }),
  };
  const value = (await asMember(shell, pathsFor(shell, options), (call) => call("webhook.replay", input))) as {
    replayed: number;
  };
  const text =
    from === undefined
      ? `${value.replayed} will be delivered again.`
      : `Everything from history id ${from} on will be delivered again.`;
  return { value, text };
}

function collectHistoryIds(text: string, before: number[] | undefined): number[] {
  if (!/^[1-9][0-9]{0,14}$/.test(text))
    throw new InvalidArgumentError("It takes history ids, whole numbers from 1 on.");
  return [...(before ?? []), Number(text)];
}

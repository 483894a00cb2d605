// `claudemesh webhook replay`: what is parked or waits, or named deliveries, or all of history from somewhere on, once
// more and at once. Receivers see the same message ids as before.
import { type Command, InvalidArgumentError, Option } from "commander";
import { webhookName } from "../argument-forms.ts";
import { examples, run, withMesh } from "../command.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { parseCount } from "./queue-create.ts";

type Options = { mesh?: string; json?: boolean; historyId?: number[]; from?: number };
type Replayed = { readonly replayed: number; readonly from_history_id: number | null };

export function define(command: Command, shell: Shell): void {
  const historyIds = new Option("--history-id <id...>", "these deliveries, whatever became of them");
  withMesh(command)
    .argument("<id>", "name of the webhook", webhookName)
    .addOption(historyIds.argParser(collectHistoryIds).conflicts("from"))
    .option("--from <history-id>", "everything from this message on, before new ones", parseCount)
    .action((id: string, options: Options) => run(shell, options, () => replay(shell, id, options)));
  examples(
    command,
    "claudemesh webhook replay ci                      what is parked or waits for its next try",
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
  const value = (await asMember(shell, pathsFor(shell, options), (call) => call("webhook.replay", input))) as Replayed;
  return { value, text: describeReplay(value) };
}

function describeReplay({ replayed, from_history_id: from }: Replayed): string {
  if (from !== null) return `Whatever is left of history from id ${from} on will be delivered again.`;
  if (replayed === 0) return "Nothing to deliver again: nothing of it is parked, settled or waiting for its next try.";
  return `${replayed} will be delivered again, beginning now.`;
}

function collectHistoryIds(text: string, before: number[] | undefined): number[] {
  if (!/^[1-9][0-9]{0,14}$/.test(text))
    throw new InvalidArgumentError("It takes history ids, whole numbers from 1 on.");
  return [...(before ?? []), Number(text)];
}

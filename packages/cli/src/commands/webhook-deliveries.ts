// `claudemesh webhook deliveries`: what became of each message, in history order.
import { type Command, InvalidArgumentError, Option } from "commander";
import { webhookName } from "../argument-forms.ts";
import { examples, run, withMesh, withTimes } from "../command.ts";
import { hint } from "../hints.ts";
import { asMember } from "../member.ts";
import { formatTable, stateCell } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { parseCount } from "./queue-create.ts";

type Options = { mesh?: string; json?: boolean; state?: string; after: number; limit: number };
type Page = {
  readonly items: readonly {
    readonly history_id: number;
    readonly broker_message_id: string;
    readonly state: string;
    readonly attempts: number;
    readonly next_attempt_at: number | null;
    readonly last_error: string | null;
  }[];
  readonly next_after: number | null;
};

export function define(command: Command, shell: Shell): void {
  withTimes(withMesh(command))
    .argument("<id>", "name of the webhook", webhookName)
    .addOption(new Option("--state <state>", "only these").choices(["pending", "delivered", "parked", "expired"]))
    .option("--after <history-id>", "go on behind this one", parseHistoryId, 0)
    .option("--limit <n>", "at most so many, up to 1000", parseCount, 100)
    .action((id: string, options: Options) => run(shell, options, () => list(shell, id, options)));
  examples(command, "claudemesh webhook deliveries ci", "claudemesh webhook deliveries ci --state parked --json");
}

async function list(shell: Shell, id: string, { state, after, limit, ...options }: Options) {
  const input = { webhook: id, after, limit, ...(state === undefined ? {} : { state }) };
  const value = (await asMember(shell, pathsFor(shell, options), (call) => call("webhook.deliveries", input))) as Page;
  const rows = value.items.map((item) => [
    String(item.history_id),
    stateCell(item.state),
    String(item.attempts),
    timeCell(item.next_attempt_at, ""),
    item.last_error ?? "",
  ]);
  const table = formatTable(["HISTORY ID", "STATE", "TRIES", "NEXT", "LAST ERROR"], rows, shell.columns);
  const parked = value.items.some((item) => item.state === "parked");
  const next = [
    ...(parked ? [hint(shell, `Deliver what is parked again:  claudemesh webhook replay ${id}`)] : []),
    ...(value.next_after === null ? [] : [`There is more:  --after ${value.next_after}`]),
  ];
  return { value, text: rows.length === 0 ? "Nothing to show." : [table, ...next].join("\n") };
}

function parseHistoryId(text: string): number {
  if (!/^[0-9]{1,15}$/.test(text)) throw new InvalidArgumentError("It takes a history id, a whole number.");
  return Number(text);
}

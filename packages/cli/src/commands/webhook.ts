// `claudemesh webhook …`: a web server that topic messages are posted to.

import { readFileSync } from "node:fs";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Commands, type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { hint } from "../hints.ts";
import { parseCount, topicName, webhookName } from "../input/arguments.ts";
import { type Confirmable, confirm, withYes } from "../input/confirm.ts";
import { asMember, readAll } from "../mesh/member.ts";
import { formatTable, stateCell } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

export const commands = {
  "webhook create": defineCreate,
  "webhook list": defineList,
  "webhook deliveries": defineDeliveries,
  "webhook replay": defineReplay,
  "webhook delete": defineDelete,
} satisfies Commands;

type CreateOptions = { mesh?: string; json?: boolean; url: string; topic?: string[]; secretFile?: string };

/** Again with the same url, topics and secret is fine; with others it is a conflict. */
function defineCreate(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<id>", "name of the webhook", webhookName)
    .requiredOption("--url <url>", "where messages are posted to, https:// or http://")
    .option("--topic <name...>", "only these topics (default: every topic)")
    .option(
      "--secret-file <path>",
      "a secret of your own, 16–256 printable characters (default: a new one, shown once)",
    )
    .action((id: string, options: CreateOptions) => run(shell, options, () => createWebhook(shell, id, options)));
  examples(
    command,
    "claudemesh webhook create ci --url https://ci.example.org/hook --topic builds",
    "claudemesh webhook create audit --url https://log.example.org/in --secret-file hook.secret --json",
  );
}

async function createWebhook(shell: Shell, id: string, options: CreateOptions) {
  const secret = options.secretFile === undefined ? undefined : readFileSync(options.secretFile, "utf8").trim();
  const input = {
    webhook: id,
    url: options.url,
    ...(options.topic === undefined ? {} : { topics: [...new Set(options.topic.map(topicName))] }),
    ...(secret === undefined ? {} : { secret }),
  };
  const value = (await asMember(shell, pathsFor(shell, options), (call) => call("webhook.create", input))) as {
    secret?: string;
  };
  const lines = [`Webhook ${id} is there: topic messages from now on go to ${options.url}.`];
  if (secret === undefined && value.secret !== undefined) {
    lines.push(`Its secret, for checking signatures; it is not shown again:\n  ${value.secret}`);
  }
  return { value, text: [...lines, hint(shell, `See what arrives:  claudemesh webhook deliveries ${id}`)].join("\n") };
}

type Webhook = {
  readonly id: string;
  readonly url: string;
  readonly topics: readonly string[] | null;
  readonly pending: number;
  readonly parked: number;
};

/** Never the secrets. */
function defineList(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await asMember(shell, pathsFor(shell, options), (call) => readAll<Webhook>(call, "webhook.list"));
      const rows = items.map(({ id, url, topics, pending, parked }) => [
        id,
        String(pending),
        String(parked),
        topics?.join(" ") ?? "(all)",
        url,
      ]);
      const table = formatTable(["WEBHOOK", "OPEN", "PARKED", "TOPICS", "URL"], rows, shell.columns);
      return { value: { items }, text: rows.length === 0 ? "There is no webhook." : table };
    }),
  );
  examples(command, "claudemesh webhook list", "claudemesh webhook list --json");
}

type DeliveriesOptions = { mesh?: string; json?: boolean; state?: string; after: number; limit: number };
type DeliveryPage = {
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

/** What became of each message, in history order. */
function defineDeliveries(command: Command, shell: Shell): void {
  withTimes(withMesh(command))
    .argument("<id>", "name of the webhook", webhookName)
    .addOption(new Option("--state <state>", "only these").choices(["pending", "delivered", "parked", "expired"]))
    .option("--after <history-id>", "go on behind this one", parseHistoryId, 0)
    .option("--limit <n>", "at most so many, up to 1000", parseCount, 100)
    .action((id: string, options: DeliveriesOptions) => run(shell, options, () => listDeliveries(shell, id, options)));
  examples(command, "claudemesh webhook deliveries ci", "claudemesh webhook deliveries ci --state parked --json");
}

async function listDeliveries(shell: Shell, id: string, { state, after, limit, ...options }: DeliveriesOptions) {
  const input = { webhook: id, after, limit, ...(state === undefined ? {} : { state }) };
  const value = (await asMember(shell, pathsFor(shell, options), (call) =>
    call("webhook.deliveries", input),
  )) as DeliveryPage;
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

type ReplayOptions = { mesh?: string; json?: boolean; historyId?: number[]; from?: number };
type Replayed = { readonly replayed: number; readonly from_history_id: number | null };

/**
 * What is parked or waits, or named deliveries, or all of history from somewhere on, once more and at once. Receivers
 * see the same message ids as before.
 */
function defineReplay(command: Command, shell: Shell): void {
  const historyIds = new Option("--history-id <id...>", "these deliveries, whatever became of them");
  withMesh(command)
    .argument("<id>", "name of the webhook", webhookName)
    .addOption(historyIds.argParser(collectHistoryIds).conflicts("from"))
    .option("--from <history-id>", "everything from this message on, before new ones", parseCount)
    .action((id: string, options: ReplayOptions) => run(shell, options, () => replayMessages(shell, id, options)));
  examples(
    command,
    "claudemesh webhook replay ci                      what is parked or waits for its next try",
    "claudemesh webhook replay ci --history-id 17 18",
    "claudemesh webhook replay ci --from 1             everything there ever was",
  );
}

async function replayMessages(shell: Shell, id: string, { historyId, from, ...options }: ReplayOptions) {
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

/** Nothing more is delivered. */
function defineDelete(command: Command, shell: Shell): void {
  withYes(withMesh(command))
    .argument("<id>", "name of the webhook", webhookName)
    .action((id: string, options: CommonOptions & Confirmable) =>
      run(shell, options, async () => {
        await confirm(shell, options, `The webhook ${id} will be gone, with what it has still to deliver.`);
        const value = await asMember(shell, pathsFor(shell, options), async (call) => {
          // A deletion answers the same where there is no such webhook, so that retries succeed; this one says that there is none.
          await call("webhook.deliveries", { webhook: id, limit: 1 });
          return call("webhook.delete", { webhook: id });
        });
        return { value, text: `Webhook ${id} is gone, with what it had still to deliver.` };
      }),
    );
  examples(command, "claudemesh webhook delete ci");
}

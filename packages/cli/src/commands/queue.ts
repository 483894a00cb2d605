// `claudemesh queue …`: queues of a mesh, and leasing and settling their messages.

import { randomUUID } from "node:crypto";
import type { DaemonClient, ParkedMessage, QueueItem } from "@claudemesh/client/daemon";
import type { Command } from "commander";
import { type Commands, type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { withDaemon } from "../daemon/daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { hint } from "../hints.ts";
import { parseCount, queueName } from "../input/arguments.ts";
import { asMember } from "../mesh/member.ts";
import { readMeshList, showCount } from "../mesh/mesh-lists.ts";
import { describeRevived, describeSettled } from "../output/queue-outcome.ts";
import { formatTable } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

export const commands = {
  "queue create": defineCreate,
  "queue list": defineList,
  "queue lease": defineLease,
  "queue ack": defineAck,
  "queue nack": defineNack,
  "queue parked": defineParked,
  "queue revive": defineRevive,
} satisfies Commands;

type CreateOptions = { mesh?: string; json?: boolean; maxDeliveries?: number };

/** Again with the same settings is fine; with others it is a conflict. */
function defineCreate(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<queue>", "id of the queue", queueName)
    .option("--max-deliveries <n>", "after so many a message is parked (default: 5)", parseCount)
    .action((queue: string, options: CreateOptions) =>
      run(shell, options, async () => {
        const { maxDeliveries } = options;
        const input = { queue, ...(maxDeliveries === undefined ? {} : { max_deliveries: maxDeliveries }) };
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("queue.create", input));
        return {
          value,
          text: hint(shell, `Queue ${queue} is there. Fill it with: claudemesh send queue:${queue} "…"`),
        };
      }),
    );
  examples(command, "claudemesh queue create builds", "claudemesh queue create builds --max-deliveries 3");
}

/** What waits in the queues of a mesh, and since when. */
function defineList(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await readMeshList<QueueItem>(shell, pathsFor(shell, options), {
        fromDaemon: (daemon, query) => daemon.queues(query),
        operation: "queue.list",
      });
      return { value: { items }, text: describeQueues(items, shell) };
    }),
  );
  examples(command, "claudemesh queue list", "claudemesh queue list --mesh acme --json");
}

function describeQueues(items: readonly QueueItem[], shell: Shell): string {
  if (items.length === 0) return hint(shell, "There are no queues. Make one with: claudemesh queue create <queue>");
  const rows = items.map((item) => [
    item.id,
    showCount(item.depth),
    showCount(item.leased),
    showCount(item.parked),
    timeCell(item.oldest_at),
    String(item.max_deliveries),
  ]);
  const table = formatTable(
    ["QUEUE", "WAITING", "LEASED", "PARKED", "OLDEST WAITS SINCE", "DELIVERIES"],
    rows,
    shell.columns,
  );
  const parked = items.filter((item) => item.parked > 0);
  return [table, ...parked.map(({ id }) => hint(shell, `Look at what is parked: claudemesh queue parked ${id}`))].join(
    "\n",
  );
}

type LeaseOptions = { mesh?: string; json?: boolean; max: number; leaseS: number; requestId?: string };

/**
 * Takes messages for a while. The same request id again gets the same ones, so that a worker whose answer was lost
 * does not strand them.
 */
function defineLease(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<queue>", "id of the queue", queueName)
    .option("--max <n>", "messages at most", parseCount, 1)
    .option("--lease-s <seconds>", "for how long", parseCount, 60)
    .option("--request-id <id>", "the identity of this request; asking again with it is safe (default: a new one)")
    .action((queue: string, options: LeaseOptions) => run(shell, options, () => leaseMessages(shell, queue, options)));
  examples(command, "claudemesh queue lease builds --max 5 --lease-s 120 --json");
}

async function leaseMessages(shell: Shell, queue: string, options: LeaseOptions) {
  const leaseRequestId = options.requestId ?? randomUUID();
  const body = { lease_request_id: leaseRequestId, max: options.max, lease_s: options.leaseS };
  const leased = await withDaemon(shell, pathsFor(shell, options), async (daemon) =>
    expectBody(await daemon.lease(queue, body)),
  );
  const value = { ...leased, lease_request_id: leaseRequestId };
  if (leased.lease_token === null) return { value, text: "Nothing is waiting in this queue." };
  const rows = leased.items.map((item) => [
    item.broker_message_id,
    item.body ?? `(${item.body_base64?.length ?? 0} base64 characters of data)`,
  ]);
  const settle = hint(shell, `claudemesh queue ack ${queue} --token ${leased.lease_token} <broker message id …>`);
  return {
    value,
    text: `${formatTable(["BROKER MESSAGE ID", "MESSAGE"], rows, shell.columns)}\nSettle with: ${settle}`,
  };
}

/** Leased messages are done. Again with the same token and ids is safe. */
function defineAck(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<queue>", "id of the queue", queueName)
    .argument("<broker-message-id...>", "messages of the lease")
    .requiredOption("--token <lease-token>", "from `claudemesh queue lease`")
    .action((queue: string, ids: string[], options: SettleOptions) => settleLeased(shell, "ack", queue, ids, options));
  examples(
    command,
    "claudemesh queue ack builds 0198c0de-0000-7000-8000-0000000000aa --token 0198c0de-0000-7000-8000-0000000000bb",
  );
}

/** Leased messages are given back. Again with the same token and ids is safe. */
function defineNack(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<queue>", "id of the queue", queueName)
    .argument("<broker-message-id...>", "messages of the lease")
    .requiredOption("--token <lease-token>", "from `claudemesh queue lease`")
    .action((queue: string, ids: string[], options: SettleOptions) => settleLeased(shell, "nack", queue, ids, options));
  examples(
    command,
    "claudemesh queue nack builds 0198c0de-0000-7000-8000-0000000000aa --token 0198c0de-0000-7000-8000-0000000000bb",
  );
}

/** Messages that were delivered too often and wait for a person to look. */
function defineParked(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<queue>", "id of the queue", queueName)
    .action((queue: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const items = await withDaemon(shell, pathsFor(shell, options), (daemon) => readParked(daemon, queue));
        const rows = items.map((item) => [item.broker_message_id, item.body ?? "(data)"]);
        const table = formatTable(["BROKER MESSAGE ID", "MESSAGE"], rows, shell.columns);
        const next = hint(shell, `\nPut back with: claudemesh queue revive ${queue} <broker message id …>`);
        return { value: { items }, text: rows.length === 0 ? "Nothing is parked." : table + next };
      }),
    );
  examples(command, "claudemesh queue parked builds");
}

/** Parked messages wait again, with a fresh count of deliveries. */
function defineRevive(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<queue>", "id of the queue", queueName)
    .argument("<broker-message-id...>", "from `claudemesh queue parked`")
    .action((queue: string, ids: string[], options: CommonOptions) =>
      run(shell, options, async () => {
        const input = { queue, broker_message_ids: ids };
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("queue.revive", input));
        return { value, text: describeRevived(queue, ids, (value as { readonly revived: number }).revived) };
      }),
    );
  examples(command, "claudemesh queue revive builds 0198c0de-0000-7000-8000-0000000000aa");
}

type SettleOptions = { readonly mesh?: string; readonly json?: boolean; readonly token: string };

function settleLeased(
  shell: Shell,
  how: "ack" | "nack",
  queue: string,
  brokerMessageIds: readonly string[],
  options: SettleOptions,
): Promise<void> {
  return run(shell, options, async () => {
    const body = { lease_token: options.token, broker_message_ids: [...brokerMessageIds] };
    const value = await withDaemon(shell, pathsFor(shell, options), async (daemon) =>
      expectBody(await daemon[how](queue, body)),
    );
    return { value, text: describeSettled(how === "ack" ? "acked" : "nacked", value) };
  });
}

export async function readParked(daemon: Pick<DaemonClient, "parked">, queue: string): Promise<ParkedMessage[]> {
  const items: ParkedMessage[] = [];
  let after: number | undefined;
  do {
    const page = expectBody(await daemon.parked(queue, { limit: 1000, ...(after === undefined ? {} : { after }) }));
    items.push(...page.items);
    after = page.next_after ?? undefined;
  } while (after !== undefined);
  return items;
}

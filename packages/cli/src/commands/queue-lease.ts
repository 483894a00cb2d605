// `claudemesh queue lease`: takes messages for a while. The same request id again gets the same ones, so that a worker
// whose answer was lost does not strand them.
import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { queueName } from "../bare-names.ts";
import { examples, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { hint } from "../hints.ts";
import { formatTable } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { parseCount } from "./queue-create.ts";

type Options = { mesh?: string; json?: boolean; max: number; leaseS: number; requestId?: string };

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<queue>", "id of the queue", queueName)
    .option("--max <n>", "messages at most", parseCount, 1)
    .option("--lease-s <seconds>", "for how long", parseCount, 60)
    .option("--request-id <id>", "the identity of this request; asking again with it is safe (default: a new one)")
    .action((queue: string, options: Options) => run(shell, options, () => lease(shell, queue, options)));
  examples(command, "claudemesh queue lease builds --max 5 --lease-s 120 --json");
}

async function lease(shell: Shell, queue: string, options: Options) {
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

// A worker that competes for the messages of a queue: node examples/queue-worker.ts builds [--until-empty]
// Start as many as you like. What a worker leased and did not finish goes to another one when the lease runs out, so a
// job may run twice: its message's client_message_id tells whether it has been done before.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { bodyOf, type LeasedMessage } from "@claudemesh/client/daemon";
import { openLocalDaemon } from "@claudemesh/client/local-daemon";
import { untilAnswered } from "@claudemesh/client/until-answered";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { "until-empty": { type: "boolean", default: false }, "lease-s": { type: "string", default: "60" } },
});
const queue = positionals[0] ?? "";
if (queue === "") throw new Error("Usage: queue-worker.ts <queue> [--until-empty] [--lease-s 60]");

const daemon = openLocalDaemon();
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());

while (!stop.signal.aborted) {
  // Asked again under the same id after a lost answer, it brings the same messages.
  const request = { lease_request_id: randomUUID(), max: 10, lease_s: Number(values["lease-s"]) };
  const { items, lease_token } = bodyOf(await untilAnswered(() => daemon.lease(queue, request)));
  if (lease_token === null && values["until-empty"]) break;
  if (lease_token === null) await sleep(1_000, undefined, { signal: stop.signal }).catch(() => undefined);
  for (const item of items) await finish(item, lease_token ?? "");
}
daemon.close();

async function finish(item: LeasedMessage, leaseToken: string): Promise<void> {
  const settle = { lease_token: leaseToken, broker_message_ids: [item.broker_message_id] };
  try {
    await work(item);
  } catch (error) {
    // Given back at once; after too many deliveries the broker parks it: claudemesh queue parked.
    console.error(`${item.client_message_id} failed: ${String(error)}`);
    await untilAnswered(() => daemon.nack(queue, settle));
    return;
  }
  const { status } = await untilAnswered(() => daemon.ack(queue, settle));
  console.log(`${item.client_message_id} ${status === 200 ? "done" : "done too late: the lease had run out"}`);
}

async function work(item: LeasedMessage): Promise<void> {
  const { command } = JSON.parse(item.body ?? "{}") as { command?: string };
  if (command === undefined) throw new Error("the job names no command");
  console.log(`${item.client_message_id} runs ${command} (delivery ${item.deliveries})`);
}

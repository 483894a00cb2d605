// Our queues without any transport: the broker's own store, leased from and settled by so many workers in this process.
// Arguments: the store as JSON, a mesh and a member of it.
import { randomBytes, randomUUID } from "node:crypto";
import process from "node:process";
import { acceptMessage } from "@claudemesh/messages/services/accept";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { limits } from "@claudemesh/protocol/messages/limits";
import { createClientIds } from "../load/client-ids.ts";
import { type JobsOrder, type JobsResult, nothingDone, workForAWhile } from "../load/job-workers.ts";
import { serveOrders } from "../processes/orders.ts";
import { benchBody } from "./bench-meshes.ts";
import { openStore, type StoreLocation } from "./store-location.ts";

const [locationJson, meshId, member] = process.argv.slice(2);
if (locationJson === undefined || meshId === undefined || member === undefined) {
  throw new Error("give the store as JSON, a mesh and a member");
}
const { messages } = await openStore(JSON.parse(locationJson) as StoreLocation);
const queue = "jobs";
await messages.queues.create(meshId, { id: queue, maxDeliveries: 5, createdBy: member }, Date.now());
const ports = {
  store: messages.accepts,
  nowMs: Date.now,
  nextId: createUuidV7Generator({ nowMs: Date.now, randomBytes }),
  inlineBytes: limits.inlineBytes,
  takesUnsealed: async () => true,
  dedupeRetentionMs: undefined,
  afterLookUp: () => undefined,
  onAccepted: () => undefined,
};
const nextId = createClientIds("time_ordered");
const sendsAtOnce = 256;

async function fill(jobs: number): Promise<void> {
  const sender = { meshId: meshId as string, pubkey: member as string };
  const destination = { kind: "queue", ref: queue } as const;
  for (let sent = 0; sent < jobs; sent += sendsAtOnce) {
    const some = Array.from({ length: Math.min(sendsAtOnce, jobs - sent) }, () =>
      acceptMessage(ports, sender, { client_message_id: nextId(), destination, body: benchBody }),
    );
    for (const { type } of await Promise.all(some)) if (type !== "accepted") throw new Error(`a job was ${type}`);
  }
}

async function leaseAndAck(max: number): Promise<number> {
  const at = { meshId: meshId as string, queue, holder: member as string };
  const asked = { ...at, leaseRequestId: randomUUID(), max, leaseSeconds: 60, leaseToken: randomUUID() };
  const leased = await messages.queues.lease(asked, Date.now());
  if (leased.type === "empty") return 0;
  if (leased.type !== "leased") throw new Error(`a lease was ${leased.type}`);
  const brokerMessageIds = leased.items.map((item) => item.broker_message_id);
  const settling = { ...at, leaseToken: leased.leaseToken, brokerMessageIds, settlement: "acked" } as const;
  const { type } = await messages.queues.settle(settling, Date.now());
  if (type !== "settled") throw new Error(`a settlement was ${type}`);
  return brokerMessageIds.length;
}

serveOrders<JobsOrder, JobsResult>(async (order) => {
  if (order.do === "work") return workForAWhile(order, leaseAndAck);
  if (order.do === "fill") await fill(order.jobs);
  return nothingDone;
});

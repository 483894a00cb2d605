// Consumers of a queue, as its suite speaks of them.
import type { LeaseOutcome, Settlement } from "../../ports/queues.ts";
import type { MessagesStore } from "../../ports.ts";
import { queue, send, type World } from "./world.ts";

type LeaseOptions = { max?: number; leaseSeconds?: number; queue?: string; store?: MessagesStore };
type SettleOptions = { queue?: string; store?: MessagesStore };

/** Consumers of the queue "jobs", which has three deliveries for each message. */
export function createConsumers(world: () => World) {
  let tokens = 0;
  const lease = (holder: string, leaseRequestId: string, options: LeaseOptions = {}): Promise<LeaseOutcome> => {
    const { store = world().store, queue: name = "jobs", max = 10, leaseSeconds = 30 } = options;
    const leaseToken = `token-${++tokens}`;
    const request = { meshId: world().meshId, queue: name, holder, leaseRequestId, max, leaseSeconds, leaseToken };
    return store.queues.lease(request, world().nowMs);
  };
  const settle =
    (settlement: Settlement) =>
    (holder: string, leaseToken: string, brokerMessageIds: readonly string[], options: SettleOptions = {}) => {
      const { store = world().store, queue: name = "jobs" } = options;
      const request = { meshId: world().meshId, queue: name, holder, leaseToken, brokerMessageIds, settlement };
      return store.queues.settle(request, world().nowMs);
    };
  return {
    lease,
    ack: settle("acked"),
    nack: settle("nacked"),
    /** A lease that must be one, with its message ids by client id. */
    async take(holder: string, leaseRequestId: string, options: LeaseOptions = {}) {
      const outcome = await lease(holder, leaseRequestId, options);
      if (outcome.type !== "leased") throw new Error(`nothing was leased: ${outcome.type}`);
      const ids = new Map(outcome.items.map((item) => [item.client_message_id, item.broker_message_id]));
      const idOf = (clientId: string) => ids.get(clientId) ?? `${clientId} is not in the lease`;
      return { ...outcome, clientIds: [...ids.keys()], ids: [...ids.values()], idOf };
    },
    parked: async (after = 0, limit = 100) => {
      const page = await world().store.queues.parked(
        { meshId: world().meshId, queue: "jobs", after, limit },
        world().nowMs,
      );
      if (page === undefined) throw new Error("there is no such queue");
      return { ...page, clientIds: page.items.map((item) => item.client_message_id) };
    },
    revive: (member: string, brokerMessageIds: readonly string[], name = "jobs") =>
      world().store.queues.revive({ meshId: world().meshId, queue: name, member, brokerMessageIds }, world().nowMs),
    /** The three members, the queue, and so many messages in it: m1, m2, … */
    async start(messages: number): Promise<[string, string, string]> {
      const members = await world().threeMembers();
      const jobs = { id: "jobs", maxDeliveries: 3, createdBy: members[0] };
      await world().store.queues.create(world().meshId, jobs, world().nowMs);
      for (let id = 1; id <= messages; id++) {
        const { type } = await world().accept(members[0], send(`m${id}`, queue("jobs")));
        if (type !== "accepted") throw new Error(`a job was ${type}`);
      }
      return members;
    },
  };
}

export type Consumers = ReturnType<typeof createConsumers>;

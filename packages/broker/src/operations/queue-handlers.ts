// Queues: creating, leasing, settling, and what was parked.
import type { QueueRefusal, Settlement } from "@claudemesh/messages/ports/queues";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Answer } from "@claudemesh/protocol/messages/accept-result";
import { limits } from "@claudemesh/protocol/messages/limits";
import type {
  PageInput,
  QueueCreateInput,
  QueueLeaseInput,
  QueueParkedInput,
  QueueReviveInput,
  QueueSettleInput,
} from "@claudemesh/protocol/wire/operations";
import type { BrokerContext } from "../context.ts";
import { type Caller, checkName, type Handlers, ok, pageLimit } from "./handler.ts";
import { admitCreation } from "./mesh-caps.ts";

export const queueHandlers = {
  "queue.create": async (broker, { member }, input: QueueCreateInput) => {
    const id = checkName(input.queue, "queue");
    const maxDeliveries = input.max_deliveries ?? limits.maxDeliveriesDefault;
    const queue = { id, maxDeliveries, createdBy: member.pubkey };
    if (!(await broker.messages.queues.exists(member.meshId, id))) {
      await admitCreation(broker, member.meshId, "queues", id);
    }
    const outcome = await broker.messages.queues.create(member.meshId, queue, broker.nowMs());
    if (outcome === "different") {
      const message = `The queue ${id} exists with another number of deliveries.`;
      throw new MeshError("exists_with_other_content", message, { name: id });
    }
    return { status: outcome === "created" ? 201 : 200, body: { id, max_deliveries: maxDeliveries } };
  },

  "queue.list": async (broker, { member }, input: PageInput) => {
    const query = { meshId: member.meshId, after: input.after ?? "", limit: pageLimit(input) };
    const page = await broker.messages.queues.list(query, broker.nowMs());
    const items = page.items.map(({ id, maxDeliveries, createdAtMs, depth, leased, parked, oldestAtMs }) => ({
      id,
      max_deliveries: maxDeliveries,
      created_at: createdAtMs,
      depth,
      leased,
      parked,
      oldest_at: oldestAtMs ?? null,
    }));
    return ok({ items, next_cursor: page.nextAfter ?? null });
  },

  "queue.lease": async (broker, { member }, input: QueueLeaseInput) => {
    const request = {
      meshId: member.meshId,
      queue: checkName(input.queue, "queue"),
      holder: member.pubkey,
      leaseRequestId: input.lease_request_id,
      max: input.max,
      leaseSeconds: input.lease_s,
      leaseToken: broker.nextId(),
    };
    const outcome = await broker.messages.queues.lease(request, broker.nowMs());
    switch (outcome.type) {
      case "leased":
        return ok({ items: outcome.items, lease_token: outcome.leaseToken, expires_at: outcome.expiresAtMs });
      case "empty":
        return ok({ items: [], lease_token: null, expires_at: null });
      case "lease_lost":
        throw new MeshError("lease_lost", "This request's lease has run out; lease again under a new request id.", {
          lease_request_id: input.lease_request_id,
        });
      case "different":
        throw new MeshError("exists_with_other_content", "This request id was used with another max or lease_s.", {
          lease_request_id: input.lease_request_id,
        });
      default:
        throw refusalOf(outcome, input.queue);
    }
  },

  "queue.ack": (broker, caller, input: QueueSettleInput) => settle(broker, caller, input, "acked"),

  "queue.nack": (broker, caller, input: QueueSettleInput) => settle(broker, caller, input, "nacked"),

  "queue.parked": async (broker, { member }, input: QueueParkedInput) => {
    const queue = checkName(input.queue, "queue");
    const query = { meshId: member.meshId, queue, after: input.after ?? 0, limit: pageLimit(input) };
    const page = await broker.messages.queues.parked(query, broker.nowMs());
    if (page === undefined) throw refusalOf({ type: "queue_not_found" }, queue);
    return ok({ items: page.items, next_after: page.nextAfter ?? null });
  },

  "queue.revive": async (broker, { member }, input: QueueReviveInput) => {
    const queue = checkName(input.queue, "queue");
    const brokerMessageIds = input.broker_message_ids;
    const request = { meshId: member.meshId, queue, member: member.pubkey, brokerMessageIds };
    const outcome = await broker.messages.queues.revive(request, broker.nowMs());
    if (outcome.type === "revived") return ok({ revived: outcome.revived });
    if (outcome.type === "message_not_found") {
      const message = "The queue holds no message with some of these ids; none was revived.";
      throw new MeshError("not_found", message, { broker_message_ids: outcome.unknown });
    }
    throw refusalOf(outcome, queue);
  },
} satisfies Handlers;

async function settle(
  broker: BrokerContext,
  { member }: Caller,
  input: QueueSettleInput,
  settlement: Settlement,
): Promise<Answer> {
  const request = {
    meshId: member.meshId,
    queue: checkName(input.queue, "queue"),
    holder: member.pubkey,
    leaseToken: input.lease_token,
    brokerMessageIds: input.broker_message_ids,
    settlement,
  };
  const outcome = await broker.messages.queues.settle(request, broker.nowMs());
  if (outcome.type === "settled") {
    const items = [...outcome.settlements].map(([id, how]) => ({ broker_message_id: id, settlement: how }));
    return ok({ items });
  }
  if (outcome.type === "lease_lost") throw new MeshError("lease_lost", undefined, { lost: outcome.lost });
  throw refusalOf(outcome, request.queue);
}

function refusalOf(refusal: QueueRefusal, queue: string): MeshError {
  if (refusal.type === "not_a_member") return new MeshError("unauthorized");
  return new MeshError("not_found", `There is no queue ${queue}; create it with \`claudemesh queue create ${queue}\`.`);
}

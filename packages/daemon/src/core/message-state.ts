// The broker's answer about one message: where it is stored and which members have it. Fields that a newer broker adds are passed over;
// an answer without what we need is none.
import { type Destination, destinationKinds } from "@claudemesh/protocol/messages/addresses";

const deliveryStates = ["unsettled", "delivered", "expired"] as const;
type DeliveryState = (typeof deliveryStates)[number];

export type Delivery = {
  readonly recipientPubkey: string;
  readonly state: DeliveryState;
  readonly settledAt: number | undefined;
};

type DeliveryCounts = Readonly<Record<DeliveryState, number>>;

/** Where a message stands in its queue: ready, leased, acked, parked or expired. */
type QueueState = {
  readonly state: string;
  readonly deliveries: number;
  readonly settledAt: number | undefined;
};

export type MessageState = {
  readonly brokerMessageId: string;
  readonly acceptedAt: number;
  readonly counts: DeliveryCounts;
  /** Undefined where this member may not see the message: an owner of the mesh sees only how many members have it. */
  readonly message:
    | {
        readonly clientMessageId: string;
        readonly historyId: number;
        readonly destination: Destination;
        readonly senderPubkey: string;
      }
    | undefined;
  /** One page, by recipient. */
  readonly deliveries: readonly Delivery[];
  readonly nextCursor: string | undefined;
  readonly queue: QueueState | undefined;
};

export function readMessageState(body: unknown): MessageState | undefined {
  const fields = fieldsOf(body);
  const { broker_message_id, accepted_at, deliveries, next_cursor } = fields;
  const counts = readCounts(fields.counts);
  if (typeof broker_message_id !== "string" || typeof accepted_at !== "number" || counts === undefined)
    return undefined;
  return {
    brokerMessageId: broker_message_id,
    acceptedAt: accepted_at,
    counts,
    message: readMessageFields(fields),
    deliveries: Array.isArray(deliveries) ? deliveries.flatMap(readDelivery) : [],
    nextCursor: typeof next_cursor === "string" ? next_cursor : undefined,
    queue: readQueue(fields.queue),
  };
}

function readMessageFields(fields: Readonly<Record<string, unknown>>): MessageState["message"] {
  const { client_message_id, history_id, sender_pubkey } = fields;
  const destination = readDestination(fields.destination);
  if (typeof client_message_id !== "string" || typeof history_id !== "number") return undefined;
  if (destination === undefined || typeof sender_pubkey !== "string") return undefined;
  return { clientMessageId: client_message_id, historyId: history_id, destination, senderPubkey: sender_pubkey };
}

function readCounts(value: unknown): DeliveryCounts | undefined {
  const { unsettled, delivered, expired } = fieldsOf(value);
  if (typeof unsettled !== "number" || typeof delivered !== "number" || typeof expired !== "number") return undefined;
  return { unsettled, delivered, expired };
}

function readDestination(value: unknown): Destination | undefined {
  const { kind, ref } = fieldsOf(value);
  const known = destinationKinds.find((each) => each === kind);
  return known === undefined || typeof ref !== "string" ? undefined : { kind: known, ref };
}

function readDelivery(value: unknown): Delivery[] {
  const { recipient_pubkey, state, settled_at } = fieldsOf(value);
  const known = deliveryStates.find((each) => each === state);
  if (known === undefined || typeof recipient_pubkey !== "string") return [];
  return [{ recipientPubkey: recipient_pubkey, state: known, settledAt: timeOf(settled_at) }];
}

function readQueue(value: unknown): QueueState | undefined {
  const { state, deliveries, settled_at } = fieldsOf(value);
  if (typeof state !== "string" || typeof deliveries !== "number") return undefined;
  return { state, deliveries, settledAt: timeOf(settled_at) };
}

function timeOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

// What became of one message, from the rows that a store has read of it: its deliveries, or its state in a queue.
import type { DestinationKind } from "@claudemesh/protocol/messages/addresses";
import { limits } from "@claudemesh/protocol/messages/limits";
import type { DeliveryCounts, DeliveryState, MessageState, MessageStateQuery, QueuedState } from "../ports/reading.ts";
import { messageAt, type QueueMessage } from "./queue-message.ts";

/** A row of history; a time in milliseconds or as a date, a boolean as a store writes it. */
export type StoredHistoryRow = {
  readonly history_id: number;
  readonly client_message_id: string;
  readonly destination_kind: DestinationKind;
  readonly destination_ref: string;
  readonly sender_pubkey: string;
  readonly accepted_at: Date | number;
  /** To the reader of the query. */
  readonly visible: boolean | number;
};

export type StoredDelivery = {
  readonly recipient_pubkey: string;
  readonly outcome: "delivered" | "expired" | null;
  readonly settled_at: Date | number | null;
};

export function toDeliveryState(row: StoredDelivery): DeliveryState {
  return {
    recipientPubkey: row.recipient_pubkey,
    state: row.outcome ?? "unsettled",
    settledAtMs: row.settled_at === null ? undefined : Number(row.settled_at),
  };
}

export function toQueuedState(stored: QueueMessage, maxDeliveries: number | undefined, nowMs: number): QueuedState {
  const message = messageAt(stored, maxDeliveries ?? limits.maxDeliveriesDefault, nowMs);
  const settledAtMs = "settledAtMs" in message ? message.settledAtMs : undefined;
  return { state: message.state, deliveries: message.deliveries, settledAtMs };
}

export function countQueued({ state }: QueuedState): DeliveryCounts {
  const delivered = state === "acked" ? 1 : 0;
  const expired = state === "expired" ? 1 : 0;
  return { unsettled: 1 - delivered - expired, delivered, expired };
}

/** For a reader who sees the message. */
export function fullState(
  historyRow: StoredHistoryRow,
  counts: DeliveryCounts,
  deliveries: readonly DeliveryState[],
  queued: QueuedState | undefined,
  { limit }: MessageStateQuery,
): MessageState {
  return {
    sight: "full",
    clientMessageId: historyRow.client_message_id,
    historyId: historyRow.history_id,
    destination: { kind: historyRow.destination_kind, ref: historyRow.destination_ref },
    senderPubkey: historyRow.sender_pubkey,
    acceptedAtMs: Number(historyRow.accepted_at),
    counts,
    deliveries,
    nextCursor: deliveries.length === limit ? deliveries.at(-1)?.recipientPubkey : undefined,
    queued,
  };
}

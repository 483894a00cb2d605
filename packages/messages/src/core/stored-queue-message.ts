// How a row of queue_message becomes a message in one of its states, and the other way round. Stores read and write the
// rows; a time is whatever their driver gives, a date or milliseconds.
import assert from "node:assert/strict";
import type { Leased, QueueMessage, QueueMessageState } from "./queue-message.ts";

export type QueueRow<M extends QueueMessage = QueueMessage> = {
  readonly meshId: string;
  readonly queue: string;
  readonly historyId: number;
  readonly brokerMessageId: string;
  readonly message: M;
};

/** A queue as it is seen at one moment. */
export type QueueMoment = {
  readonly meshId: string;
  readonly queue: string;
  readonly maxDeliveries: number;
  readonly nowMs: number;
};

export type QueueMove = { readonly from: QueueRow; readonly to: QueueMessage };

type StoredTime = Date | number | null;

export type StoredQueueMessage = {
  readonly mesh_id: string;
  readonly queue: string;
  readonly history_id: number;
  readonly broker_message_id: string;
  readonly state: QueueMessageState;
  readonly deliveries: number;
  readonly lease_holder: string | null;
  readonly lease_token: string | null;
  readonly lease_expires_at: StoredTime;
  readonly parked_at: StoredTime;
  readonly settled_at: StoredTime;
};

export function toQueueRow(stored: StoredQueueMessage): QueueRow {
  return {
    meshId: stored.mesh_id,
    queue: stored.queue,
    historyId: stored.history_id,
    brokerMessageId: stored.broker_message_id,
    message: toQueueMessage(stored),
  };
}

function toQueueMessage(stored: StoredQueueMessage): QueueMessage {
  const { state, deliveries } = stored;
  const lease = () => ({ holder: present(stored.lease_holder), leaseToken: present(stored.lease_token) });
  switch (state) {
    case "ready":
      return { state, deliveries };
    case "leased":
      return { state, deliveries, ...lease(), expiresAtMs: Number(present(stored.lease_expires_at)) };
    case "parked":
      return { state, deliveries, parkedAtMs: Number(present(stored.parked_at)) };
    case "acked":
      return { state, deliveries, ...lease(), settledAtMs: Number(present(stored.settled_at)) };
    case "expired":
      return { state, deliveries, settledAtMs: Number(present(stored.settled_at)) };
  }
}

/** The table's own checks promise it. */
function present<T>(value: T | null): T {
  assert(value !== null, "a row of queue_message lacks what its state needs");
  return value;
}

/** What stands in the columns of a state beside `state` and `deliveries`. */
export function columnsOf(message: QueueMessage) {
  return {
    holder: "holder" in message ? message.holder : null,
    leaseToken: "leaseToken" in message ? message.leaseToken : null,
    expiresAtMs: "expiresAtMs" in message ? message.expiresAtMs : null,
    parkedAtMs: "parkedAtMs" in message ? message.parkedAtMs : null,
    settledAtMs: "settledAtMs" in message ? message.settledAtMs : null,
  };
}

export function isLeased(row: QueueRow): row is QueueRow<Leased> {
  return row.message.state === "leased";
}

export function byHistory(a: QueueRow, b: QueueRow): number {
  return a.historyId - b.historyId;
}

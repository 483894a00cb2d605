// How the columns of a message of a queue become one of its states. Stores read the rows.
import assert from "node:assert/strict";
import type { QueueMessage, QueueMessageState } from "./queue-message.ts";

/** Times in milliseconds. */
export type StoredQueueMessage = {
  readonly state: QueueMessageState;
  readonly deliveries: number;
  readonly leaseHolder: string | null;
  readonly leaseToken: string | null;
  readonly leaseExpiresAtMs: number | null;
  readonly parkedAtMs: number | null;
  readonly settledAtMs: number | null;
};

export function toQueueMessage(row: StoredQueueMessage): QueueMessage {
  const { state, deliveries } = row;
  switch (state) {
    case "ready":
      return { state, deliveries };
    case "leased":
      return { state, deliveries, ...leaseOf(row), expiresAtMs: present(row.leaseExpiresAtMs) };
    case "parked":
      return { state, deliveries, parkedAtMs: present(row.parkedAtMs) };
    case "acked":
      return { state, deliveries, ...leaseOf(row), settledAtMs: present(row.settledAtMs) };
    case "expired":
      return { state, deliveries, settledAtMs: present(row.settledAtMs) };
  }
}

function leaseOf(row: StoredQueueMessage): { holder: string; leaseToken: string } {
  return { holder: present(row.leaseHolder), leaseToken: present(row.leaseToken) };
}

/** The table's own checks promise it. */
function present<T>(value: T | null): T {
  assert(value !== null, "a row of queue_message lacks what its state needs");
  return value;
}

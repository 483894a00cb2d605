// Every state that a message of a queue can be in, and every step between them. A store reads a row, asks here what
// becomes of it, and writes that with a compare-and-set. Correctness needs no timer: a lease that has expired
// holds nothing, whether or not its row says so yet.

export type QueueMessage =
  | { readonly state: "ready"; readonly deliveries: number }
  | ({ readonly state: "leased" } & HeldMessage)
  | { readonly state: "parked"; readonly deliveries: number; readonly parkedAtMs: number }
  | ({ readonly state: "acked"; readonly settledAtMs: number } & Omit<HeldMessage, "expiresAtMs">)
  /** Retention removed the message before any consumer acked it. */
  | { readonly state: "expired"; readonly deliveries: number; readonly settledAtMs: number };

type HeldMessage = {
  /** How often it was leased since it was accepted, or since it was revived. */
  readonly deliveries: number;
  readonly holder: string;
  readonly leaseToken: string;
  readonly expiresAtMs: number;
};

export type QueueMessageState = QueueMessage["state"];
export type Leased = Extract<QueueMessage, { state: "leased" }>;
export type LeaseTerms = Pick<HeldMessage, "holder" | "leaseToken" | "expiresAtMs">;

/** What a stored row means now: leased becomes ready or parked once its lease has expired. */
export function messageAt(stored: QueueMessage, maxDeliveries: number, nowMs: number): QueueMessage {
  if (stored.state !== "leased" || stored.expiresAtMs > nowMs) return stored;
  return giveBack(stored, maxDeliveries, stored.expiresAtMs);
}

/** Leased → ready, or parked after its last delivery. Follows a nack, an expired lease, or the end of a membership. */
export function giveBack(message: Leased, maxDeliveries: number, nowMs: number): QueueMessage {
  const { deliveries } = message;
  if (deliveries < maxDeliveries) return { state: "ready", deliveries };
  return { state: "parked", deliveries, parkedAtMs: nowMs };
}

/** Ready → leased, which counts as a delivery. */
export function grantLease(message: Extract<QueueMessage, { state: "ready" }>, terms: LeaseTerms): Leased {
  return { state: "leased", deliveries: message.deliveries + 1, ...terms };
}

/** Leased → acked, for good. */
export function acknowledge(message: Leased, nowMs: number): QueueMessage {
  const { deliveries, holder, leaseToken } = message;
  return { state: "acked", deliveries, holder, leaseToken, settledAtMs: nowMs };
}

/** Parked → ready, with all its deliveries available again. */
export function revive(_message: Extract<QueueMessage, { state: "parked" }>): QueueMessage {
  return { state: "ready", deliveries: 0 };
}

/** Anything that is not settled → expired, for good. */
export function expireMessage(message: QueueMessage, nowMs: number): QueueMessage {
  if (message.state === "acked" || message.state === "expired") return message;
  return { state: "expired", deliveries: message.deliveries, settledAtMs: nowMs };
}

// What leasing from queues needs from a store, with its guarantees. SQLite and PostgreSQL stores owe the same.
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";

export type LeaseRequest = {
  readonly meshId: string;
  readonly queue: string;
  readonly holder: string;
  readonly leaseRequestId: string;
  readonly max: number;
  readonly leaseSeconds: number;
  /** The token that the lease will have if this request makes one. */
  readonly leaseToken: string;
};

/** A message that a consumer has leased, and which delivery of it this is. */
export type LeasedItem = HistoryItem & { readonly deliveries: number };

export type LeaseOutcome =
  | {
      readonly type: "leased";
      readonly items: readonly LeasedItem[];
      readonly leaseToken: string;
      readonly expiresAtMs: number;
    }
  /** Nothing is available. The request id is still free. */
  | { readonly type: "empty" }
  /** This request's lease has expired. */
  | { readonly type: "lease_lost" }
  /** This request id was used with another `max` or `leaseSeconds`. */
  | { readonly type: "different" }
  | QueueRefusal;

export type QueueRefusal = { readonly type: "queue_not_found" } | { readonly type: "not_a_member" };

export type Settlement = "acked" | "nacked";

export type SettleRequest = {
  readonly meshId: string;
  readonly queue: string;
  readonly holder: string;
  readonly leaseToken: string;
  readonly brokerMessageIds: readonly string[];
  readonly settlement: Settlement;
};

export type SettleOutcome =
  /** How this token settled each of them, now or earlier: the first settlement stands. */
  | { readonly type: "settled"; readonly settlements: ReadonlyMap<string, Settlement> }
  /** These were not settled by this token while it held them. Nothing of the call was applied. */
  | { readonly type: "lease_lost"; readonly lost: readonly string[] }
  | QueueRefusal;

export type ParkedItem = HistoryItem & { readonly deliveries: number; readonly parked_at: number };

export type ParkedPage = { readonly items: readonly ParkedItem[]; readonly nextAfter: number | undefined };

/** One attempt of a store to read a page of what is parked. */
export type ParkedPageOutcome =
  | ({ readonly type: "page" } & ParkedPage)
  /** So many leases have expired that they have to be written down before the page can be read. */
  | { readonly type: "too_many_expired" }
  | Extract<QueueRefusal, { type: "queue_not_found" }>;

export type ReviveOutcome =
  /** How many were parked; the others stay as they are. */
  | { readonly type: "revived"; readonly revived: number }
  /** These are no messages of this queue. Nothing was revived. */
  | { readonly type: "message_not_found"; readonly unknown: readonly string[] }
  | QueueRefusal;

/** What waits in a queue. A number that has reached 10,000 means at least so many. */
export type QueueSummary = {
  readonly id: string;
  readonly maxDeliveries: number;
  readonly createdAtMs: number;
  /** Available now. */
  readonly depth: number;
  /** In live leases. */
  readonly leased: number;
  readonly parked: number;
  /** When the first of those that are available was accepted. */
  readonly oldestAtMs: number | undefined;
};

/** A page may end before its limit, where it has counted enough. */
export type QueueListPage = { readonly items: readonly QueueSummary[]; readonly nextAfter: string | undefined };

export type ParkedCount = { readonly queue: string; readonly parked: number };

export type QueueStore = {
  readonly create: (
    meshId: string,
    queue: { id: string; maxDeliveries: number; createdBy: string },
    nowMs: number,
  ) => Promise<"created" | "exists" | "different">;
  readonly exists: (meshId: string, queue: string) => Promise<boolean>;
  /** How many the mesh has; counts no further than `upTo`. */
  readonly count: (meshId: string, upTo: number) => Promise<number>;
  /**
   * Leases what is available, in history order; a message is in one live lease at most. (queue, holder, request id)
   * is the identity of a lease: the same request again gets the same token and those of its messages that are not settled.
   * Everything is durable when this resolves. The answer fits a frame; `max` is an upper bound. Of the expired leases a
   * call reads a bounded number, first those that expired first; the next call reads the others.
   */
  readonly lease: (request: LeaseRequest, nowMs: number) => Promise<LeaseOutcome>;
  /** Acks are for good; a nack makes the message available at once, or parks it after its last delivery. */
  readonly settle: (request: SettleRequest, nowMs: number) => Promise<SettleOutcome>;
  /** The queues of a mesh behind one, by id. */
  readonly list: (query: { meshId: string; after: string; limit: number }, nowMs: number) => Promise<QueueListPage>;
  /** How many messages of which queues are stored as parked. Counting stops at `limit` messages. */
  readonly countParked: (meshId: string, limit: number) => Promise<readonly ParkedCount[]>;
  /** What is parked now, in history order. Undefined where there is no such queue. */
  readonly parked: (
    query: { meshId: string; queue: string; after: number; limit: number },
    nowMs: number,
  ) => Promise<ParkedPage | undefined>;
  /** Puts parked messages back with a fresh count of deliveries. */
  readonly revive: (
    request: { meshId: string; queue: string; member: string; brokerMessageIds: readonly string[] },
    nowMs: number,
  ) => Promise<ReviveOutcome>;
};

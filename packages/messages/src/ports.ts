// What the message services need from outside, each with its guarantee. SQLite and PostgreSQL stores owe the same.
import type { AcceptResult } from "@claudemesh/protocol/messages/accept-result";
import type { SendToAccept } from "@claudemesh/protocol/messages/commit-sends";
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import type { HousekeepingStore } from "./ports/housekeeping.ts";
import type { MembershipStore } from "./ports/memberships.ts";
import type { OrphanStore } from "./ports/orphans.ts";
import type { PresenceStore } from "./ports/presence.ts";
import type { QueueStore } from "./ports/queues.ts";
import type { DestinationStore, MentionStore, MessageStateStore, SearchStore } from "./ports/reading.ts";
import type { StatsStore } from "./ports/stats.ts";
import type { WebhookStore } from "./ports/webhooks.ts";

export type { SendToAccept };

export type OfferedSend = SendToAccept & {
  /** Called when the id is about to be claimed: whether that is too long after its look-up (MSG-24). */
  readonly isOutdated: () => boolean;
};

export type StoredAccept = {
  readonly brokerMessageId: string;
  readonly historyId: number;
  readonly fingerprint: Uint8Array;
  readonly senderPubkey: string;
  readonly historyAvailable: boolean;
  readonly firstSeenAtMs: number;
};

/** How an accept ended, and the recipients to push to where it was the first of its id. */
export type CommittedAccept = {
  readonly result: AcceptResult;
  readonly recipients: readonly string[];
  /** Set by stores that keep the budget themselves: this call took a unit. */
  readonly budgetSpent?: boolean;
};

export type AcceptStore = {
  /** Looks the id up: committed rows only, one indexed read, no write. */
  readonly findAccepted: (meshId: string, clientMessageId: string) => Promise<StoredAccept | undefined>;
  /**
   * Spends the budget, then claims, judges and writes in one transaction that is durable when this resolves: all five effects
   * or none. Under the mesh's lock it sees every fence and revocation that committed before it, and takes a history_id
   * that grows in commit order. A refusal leaves no dedupe row; spent budget stays spent.
   */
  readonly accept: (send: OfferedSend) => Promise<CommittedAccept>;
};

export type FenceRequest = {
  readonly meshId: string;
  readonly senderPubkey: string;
  readonly clientMessageId: string;
  readonly fingerprint: Uint8Array;
};

export type FateResult =
  | {
      readonly fate: "committed";
      readonly brokerMessageId: string;
      readonly historyId: number;
      /** False where retention has removed the message. */
      readonly historyAvailable: boolean;
    }
  | { readonly fate: "fenced" }
  | { readonly fate: "taken" }
  | { readonly fate: "none" };

export type FenceStore = {
  readonly findFate: (request: FenceRequest) => Promise<FateResult>;
  /** Takes the mesh's lock: after it resolves with `fenced`, no send of this id by this member can commit. */
  readonly fence: (
    request: FenceRequest,
    nowMs: number,
    expiresAtMs: number | undefined,
  ) => Promise<Exclude<FateResult, { fate: "none" }>>;
};

export type DeliveryStore = {
  /** A recipient's unsettled deliveries with history_id above `after`, in history order. */
  readonly unsettled: (meshId: string, recipient: string, after: number, limit: number) => Promise<HistoryItem[]>;
  /** Settles this recipient's deliveries; those that are settled already and those of others are ignored. */
  readonly settle: (meshId: string, recipient: string, historyIds: readonly number[], nowMs: number) => Promise<void>;
};

export type HistoryQuery = {
  readonly meshId: string;
  readonly reader: string;
  readonly after: number;
  readonly limit: number;
  readonly topic: string | undefined;
};

export type HistoryStore = {
  /**
   * What the reader sent, received, or may read as a subscriber, in commit order. Bounded work per call:
   * `nextAfter` moves on even where little was visible, and is undefined at the end.
   */
  readonly read: (query: HistoryQuery) => Promise<{ items: HistoryItem[]; nextAfter: number | undefined }>;
};

export type PostPolicy = "members" | "subscribers";
export type Topic = { readonly name: string; readonly postPolicy: PostPolicy; readonly subscribed: boolean };

export type TopicCounts = {
  /** 10,000 means at least so many. */
  readonly subscribers: number;
  /** All that history has had. Lags a moment behind the accepts. */
  readonly messages: number;
  readonly lastMessageAtMs: number | undefined;
};

export type TopicStore = {
  readonly create: (
    meshId: string,
    topic: { name: string; postPolicy: PostPolicy; createdBy: string },
    nowMs: number,
  ) => Promise<"created" | "exists" | "different">;
  readonly exists: (meshId: string, topic: string) => Promise<boolean>;
  /** How many the mesh has; counts no further than `upTo`. */
  readonly count: (meshId: string, upTo: number) => Promise<number>;
  readonly list: (meshId: string, reader: string, after: string, limit: number) => Promise<Topic[]>;
  /** By name, for those of the given topics that it has counted: the first at least, and as many as a page may count. */
  readonly measure: (meshId: string, topics: readonly string[]) => Promise<ReadonlyMap<string, TopicCounts>>;
  /** False where there is no such topic. */
  readonly subscribe: (meshId: string, topic: string, pubkey: string, nowMs: number) => Promise<boolean>;
  readonly unsubscribe: (meshId: string, topic: string, pubkey: string) => Promise<boolean>;
  /** Deletes the topic with its subscriptions; what was posted stays in history. Does nothing where there is no such topic. */
  readonly delete: (meshId: string, topic: string) => Promise<void>;
};

export type MessagesStore = {
  readonly accepts: AcceptStore;
  readonly fences: FenceStore;
  readonly deliveries: DeliveryStore;
  readonly history: HistoryStore;
  readonly topics: TopicStore;
  readonly queues: QueueStore;
  readonly webhooks: WebhookStore;
  readonly memberships: MembershipStore;
  readonly presence: PresenceStore;
  readonly mentions: MentionStore;
  readonly search: SearchStore;
  readonly messageState: MessageStateStore;
  readonly destinations: DestinationStore;
  readonly housekeeping: HousekeepingStore;
  readonly orphans: OrphanStore;
  readonly stats: StatsStore;
  /** Forgets up to `limit` records of spent budget from windows that are over; returns how many. */
  readonly sweepLimiter: (nowMs: number, limit: number) => Promise<number>;
};

// Finding stored messages otherwise than in order: by mention, by text, and one by its id. Readers see what they see of
// history: what the reader sent, what it received, and topics that it is subscribed to.
import type { Destination } from "@claudemesh/protocol/messages/addresses";
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import type { QueueMessageState } from "../core/queue-message.ts";

/**
 * In commit order. Bounded work per call: `nextAfter` is the last of the items where more are visible, else the end of
 * the stretch of history that the call looked at, and undefined at the end. What is hidden from the reader moves neither.
 */
export type FoundPage = { readonly items: readonly HistoryItem[]; readonly nextAfter: number | undefined };

type Page = { readonly meshId: string; readonly reader: string; readonly after: number; readonly limit: number };

export type MentionStore = {
  /** Messages that mention `of` and that the reader may see; being mentioned lets no member see more. */
  readonly read: (query: Page & { readonly of: string }) => Promise<FoundPage>;
};

export type SearchStore = {
  /** Messages in clear text that hold every term. The index lags behind history and never leads. */
  readonly find: (query: Page & { readonly terms: readonly string[] }) => Promise<FoundPage>;
  /**
   * Takes a bounded number of messages into the index, in history order, and remembers how far it is in the same
   * transaction. False where nothing was left. Any number of brokers may do this at once.
   */
  readonly indexNext: (nowMs: number) => Promise<boolean>;
};

export type DeliveryCounts = { readonly unsettled: number; readonly delivered: number; readonly expired: number };

export type DeliveryState = {
  readonly recipientPubkey: string;
  readonly state: keyof DeliveryCounts;
  readonly settledAtMs: number | undefined;
};

export type QueuedState = {
  readonly state: QueueMessageState;
  readonly deliveries: number;
  readonly settledAtMs: number | undefined;
};

/** What became of one message, as far as the reader may know it. */
export type MessageState =
  | { readonly sight: "counts"; readonly acceptedAtMs: number; readonly counts: DeliveryCounts }
  | {
      readonly sight: "full";
      readonly clientMessageId: string;
      readonly historyId: number;
      readonly destination: Destination;
      readonly senderPubkey: string;
      readonly acceptedAtMs: number;
      readonly counts: DeliveryCounts;
      /** By recipient; those of a queue are in `queued`. */
      readonly deliveries: readonly DeliveryState[];
      readonly nextCursor: string | undefined;
      readonly queued: QueuedState | undefined;
    };

export type MessageStateQuery = {
  readonly meshId: string;
  readonly brokerMessageId: string;
  readonly reader: string;
  /** Owners read counts of what they may not see. */
  readonly readerIsOwner: boolean;
  /** Of the deliveries, by recipient. */
  readonly after: string;
  readonly limit: number;
};

/** What a send of this member to the destination would meet now, before it is made. */
export type DestinationState = {
  readonly refusal: "destination_not_found" | "not_subscribed" | undefined;
  /** Would a message get at least one recipient? A queue takes messages also where it has no consumer yet. */
  readonly hasRecipients: boolean;
};

export type DestinationQuery = { readonly meshId: string; readonly sender: string; readonly destination: Destination };

export type DestinationStore = {
  /** Judges as an accept does, on committed rows and without a lock; says nothing about the sender itself. */
  readonly find: (query: DestinationQuery) => Promise<DestinationState>;
};

export type MessageStateStore = {
  /** Undefined where there is no such message for this reader. A member that leased or acked a queue's message sees its state. */
  readonly find: (query: MessageStateQuery, nowMs: number) => Promise<MessageState | undefined>;
};

// What webhooks need from a store, with its guarantees. SQLite and PostgreSQL stores owe the same. A webhook is sent
// topic messages only, which any member could read by subscribing.
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import type { DeliverySlots } from "../core/webhook-claims.ts";
import type { JudgedTry, WebhookDeliveryState } from "../core/webhook-delivery.ts";

export type NewWebhook = {
  readonly meshId: string;
  readonly id: string;
  /** Distinguishes it from an earlier webhook of the same id. */
  readonly incarnation: string;
  readonly url: string;
  /** Sorted; undefined: every topic. */
  readonly topics: readonly string[] | undefined;
  /** In clear, because requests are signed with it. */
  readonly secret: string;
  /** Over what the owner asked for. */
  readonly fingerprint: Uint8Array;
  readonly createdBy: string;
};

export type StoredWebhook = Pick<NewWebhook, "id" | "url" | "topics" | "createdBy"> & {
  readonly createdAtMs: number;
  /** Deliveries are written for history up to here. */
  readonly writtenUpTo: number;
  readonly pending: number;
  readonly parked: number;
};

export type WebhookDeliveryItem = {
  readonly historyId: number;
  readonly brokerMessageId: string;
  readonly state: WebhookDeliveryState;
  readonly attempts: number;
  readonly dueAtMs: number | undefined;
  readonly lastAttemptAtMs: number | undefined;
  readonly lastStatus: number | undefined;
  readonly lastError: string | undefined;
  readonly settledAtMs: number | undefined;
};

/** One delivery that this broker has claimed, with everything that a try needs. */
export type ClaimedDelivery = {
  readonly meshId: string;
  readonly meshName: string;
  readonly webhook: string;
  readonly incarnation: string;
  readonly url: string;
  readonly secret: string;
  /** The number of this try. A settlement that names another try is ignored. */
  readonly attempt: number;
  /** The webhook's try before this one failed. */
  readonly failing: boolean;
  readonly item: HistoryItem;
};

export type Claim = {
  readonly claimed: readonly ClaimedDelivery[];
  /** How many due deliveries expired because retention has removed their message. */
  readonly expired: number;
};

export type ClaimTerms = DeliverySlots & {
  /** A delivery that is not settled within this time is due again, for any broker. */
  readonly leaseMs: number;
};

export type WebhookStore = {
  /**
   * Messages accepted after this resolves are delivered, and some before it may be. The same fingerprint again changes
   * nothing.
   */
  readonly create: (
    webhook: NewWebhook,
    nowMs: number,
    perMeshMax: number,
  ) => Promise<"created" | "exists" | "different" | "full">;
  /** Undefined where there is no such webhook. */
  readonly find: (
    meshId: string,
    id: string,
  ) => Promise<{ readonly fingerprint: Uint8Array; readonly createdAtMs: number } | undefined>;
  /** By id. The answer fits a frame. */
  readonly list: (
    meshId: string,
    after: string,
    limit: number,
  ) => Promise<{ readonly items: readonly StoredWebhook[]; readonly nextCursor: string | undefined }>;
  /** Takes effect at once: nothing is claimed any more, and the secret is gone. Does nothing where there is no such webhook. */
  readonly delete: (meshId: string, id: string, nowMs: number) => Promise<void>;
  /** In history order. Undefined where there is no such webhook. */
  readonly deliveries: (query: {
    readonly meshId: string;
    readonly id: string;
    readonly state: WebhookDeliveryState | undefined;
    readonly after: number;
    readonly limit: number;
  }) => Promise<{ readonly items: readonly WebhookDeliveryItem[]; readonly nextAfter: number | undefined } | undefined>;
  /**
   * Makes deliveries due now, with all their tries available again: those named, whatever their state, or up to `limit` of
   * those that are parked or wait for their next try. Deliveries that a broker is trying or that are due already stay as they
   * are. Returns how many there were, and undefined where there is no such webhook.
   */
  readonly replay: (
    meshId: string,
    id: string,
    which: { readonly historyIds: readonly number[] } | { readonly limit: number },
    nowMs: number,
  ) => Promise<number | undefined>;
  /** Goes through history again from that id on, and replays what it meets. False where there is no such webhook. */
  readonly replayFrom: (meshId: string, id: string, fromHistoryId: number) => Promise<boolean>;
  /**
   * Writes the deliveries of a bounded stretch of committed history for the webhook that has waited longest, and how far
   * it is, in one transaction; of messages that retention has removed it writes none. False where nothing is left to write,
   * or webhooks have as many open deliveries as they may have.
   * Any number of brokers may do this at once.
   */
  readonly writeNext: (nowMs: number) => Promise<boolean>;
  /**
   * Claims deliveries that are due: of each webhook the oldest first, and shared among webhooks by core/webhook-claims.ts.
   * Each belongs to one broker until it is settled or its lease has expired. The call reads a bounded number of rows, however
   * many are due. The count of the try is durable when this resolves. Webhooks whose creator is no owner any more are skipped.
   * Due deliveries whose message retention has removed expire, and need no slot for that.
   */
  readonly claim: (terms: ClaimTerms, nowMs: number) => Promise<Claim>;
  /**
   * A success settles the delivery, whatever try it was; a failure counts only for the try that it names. A webhook is
   * failing from a failure until its next success.
   */
  readonly settle: (
    delivery: Pick<ClaimedDelivery, "meshId" | "incarnation" | "attempt"> & { readonly historyId: number },
    judged: JudgedTry,
    nowMs: number,
  ) => Promise<void>;
  /**
   * Forgets up to `limit` rows: deliveries that were settled before `settledBeforeMs`, parked ones aside, and what is
   * left of deleted webhooks. Returns how many.
   */
  readonly prune: (settledBeforeMs: number, limit: number) => Promise<number>;
  /** Of all meshes. */
  readonly counts: () => Promise<{ readonly pending: number; readonly parked: number }>;
};

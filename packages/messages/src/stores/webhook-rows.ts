// Webhooks and their deliveries as both stores read them, and what both hold them to. Statements are each store's own,
// and times are as the store's driver gives them.
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import { cutToPage } from "../core/page-room.ts";
import type { WebhookDeliveryState } from "../core/webhook-delivery.ts";
import type { Claim, ClaimedDelivery, StoredWebhook, WebhookDeliveryItem, WebhookStore } from "../ports/webhooks.ts";

/**
 * Deliveries of one webhook that are neither settled nor parked. A receiver that is away for long makes its webhook
 * wait where it is in history; it does not fill the table.
 */
export const openDeliveriesMax = 1_000;
export const noClaim: Claim = { claimed: [], expired: 0 };

/** A webhook whose turn it is, with all that its deliveries have in common. */
export type TurnRow = {
  readonly mesh_id: string;
  readonly mesh_name: string;
  readonly webhook: string;
  readonly incarnation: string;
  readonly url: string;
  readonly secret: string;
  readonly failing: boolean | number;
};

/** Due rows of one webhook that a claim looks at: more than it takes, so that those without a message are soon gone. */
export const dueLookedAt = 32;

export type DueRow = {
  readonly history_id: number;
  readonly attempts: number;
  /** Its message is: retention has not removed it. */
  readonly there: boolean | number;
};

export function toClaimed(turn: TurnRow, attempt: number, item: HistoryItem): ClaimedDelivery {
  const { mesh_id: meshId, mesh_name: meshName, webhook, incarnation, url, secret } = turn;
  return { meshId, meshName, webhook, incarnation, url, secret, attempt, failing: Boolean(turn.failing), item };
}

export type WebhookRow = {
  readonly id: string;
  readonly url: string;
  readonly topics: readonly string[] | null;
  readonly created_by: string;
  readonly created_at: Date | number;
  readonly written_up_to: number;
  readonly pending: number;
  readonly parked: number;
};

export function toWebhookPage(rows: readonly WebhookRow[], limit: number): Awaited<ReturnType<WebhookStore["list"]>> {
  return cutToPage(rows.map(toWebhook), limit, ({ id }) => id);
}

function toWebhook(row: WebhookRow): StoredWebhook {
  return {
    id: row.id,
    url: row.url,
    topics: row.topics ?? undefined,
    createdBy: row.created_by,
    createdAtMs: Number(row.created_at),
    writtenUpTo: row.written_up_to,
    pending: row.pending,
    parked: row.parked,
  };
}

export type DeliveryRow = {
  readonly history_id: number;
  readonly broker_message_id: string;
  readonly state: WebhookDeliveryState;
  readonly attempts: number;
  readonly due_at: Date | number | null;
  readonly last_attempt_at: Date | number | null;
  readonly last_status: number | null;
  readonly last_error: string | null;
  readonly settled_at: Date | number | null;
};

export function toDeliveryItem(row: DeliveryRow): WebhookDeliveryItem {
  return {
    historyId: row.history_id,
    brokerMessageId: row.broker_message_id,
    state: row.state,
    attempts: row.attempts,
    dueAtMs: toMs(row.due_at),
    lastAttemptAtMs: toMs(row.last_attempt_at),
    lastStatus: row.last_status ?? undefined,
    lastError: row.last_error ?? undefined,
    settledAtMs: toMs(row.settled_at),
  };
}

function toMs(time: Date | number | null): number | undefined {
  return time === null ? undefined : Number(time);
}

// Webhooks and their deliveries as both stores read them, and the bounds that both stores keep. Each store has its own
// statements, and times are as the store's driver gives them.
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import { cutToPage } from "../core/page-room.ts";
import type { WebhookDeliveryState } from "../core/webhook-delivery.ts";
import type { Claim, ClaimedDelivery, StoredWebhook, WebhookDeliveryItem, WebhookStore } from "../ports/webhooks.ts";

/**
 * Bounds the deliveries of one webhook that are neither settled nor parked. When a receiver is away for long, its webhook stays
 * where it is in history instead of filling the table.
 */
export const openDeliveriesMax = 1_000;
export const noClaim: Claim = { claimed: [], expired: 0 };

/** A webhook whose turn it is, with everything that its deliveries have in common. */
export type TurnRow = {
  readonly mesh_id: string;
  readonly mesh_name: string;
  readonly webhook: string;
  readonly incarnation: string;
  readonly url: string;
  readonly secret: string;
  readonly failing: boolean | number;
};

/** Due rows that a claim reads of one webhook: more than it claims, so that those without a message soon expire. */
export const duePerWebhook = 32;

export type DueRow = {
  readonly history_id: number;
  readonly attempts: number;
  /** Whether its message is there: retention has not removed it. */
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

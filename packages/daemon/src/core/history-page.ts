// Reading a page of history that came over the link. Pushes are checked by the link itself; answers are ours to check.
// What cannot be understood is left out of the page and counted, never guessed at.
import { destinationKinds } from "@claudemesh/protocol/messages/addresses";
import { envelopeVersions, priorities } from "@claudemesh/protocol/messages/envelope";
import { limits } from "@claudemesh/protocol/messages/limits";
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";

export type HistoryPage = {
  readonly items: readonly HistoryItem[];
  readonly notUnderstood: number;
  /** Where to go on; undefined at the end. */
  readonly nextAfter: number | undefined;
};

export function readHistoryPage(body: unknown): HistoryPage | undefined {
  const { items, next_after } = asFields(body);
  if (!Array.isArray(items)) return undefined;
  const understood = items.filter(isHistoryItem);
  return {
    items: understood,
    notUnderstood: items.length - understood.length,
    nextAfter: typeof next_after === "number" ? next_after : undefined,
  };
}

function isHistoryItem(value: unknown): value is HistoryItem {
  const item = asFields(value);
  const destination = asFields(item.destination);
  return (
    isWhole(item.history_id) &&
    isWhole(item.accepted_at) &&
    isText(item.broker_message_id) &&
    isText(item.client_message_id) &&
    isText(item.sender_pubkey) &&
    isOneOf(destinationKinds, destination.kind) &&
    isText(destination.ref) &&
    isOneOf(envelopeVersions, item.envelope_version) &&
    isOneOf(priorities, item.priority) &&
    typeof item.meta === "object" &&
    (item.reply_to_id === null || isText(item.reply_to_id)) &&
    (isText(item.body) || isText(item.body_base64))
  );
}

function asFields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isWhole(value: unknown): boolean {
  return Number.isSafeInteger(value);
}

function isOneOf(values: readonly string[], value: unknown): boolean {
  return isText(value) && values.includes(value);
}

/** As many items as fit into a frame when every body is as large as it may be, in base64; halved so many times. */
export function historyPageItems(inlineBytes: number, halvings: number): number {
  const itemBytes = (inlineBytes * 4) / 3 + limits.metaBytes + 1_024;
  const fitting = Math.floor((limits.frameBytes * 0.9) / itemBytes);
  return Math.max(1, Math.min(limits.pageItems, fitting) >> Math.min(halvings, 30));
}

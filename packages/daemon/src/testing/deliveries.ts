// Messages as the broker pushes them, for tests that care about what the daemon does with them.
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import type { ScriptedLink } from "./scripted-link.ts";

export function delivery(historyId: number, given: Partial<HistoryItem> = {}): HistoryItem {
  return {
    history_id: historyId,
    broker_message_id: `01890000-0000-7000-8000-${String(historyId).padStart(12, "0")}`,
    client_message_id: `message-${historyId}`,
    destination: { kind: "topic", ref: "general" },
    sender_pubkey: "ab".repeat(32),
    envelope_version: "1",
    body: `text ${historyId}`,
    meta: null,
    priority: "next",
    reply_to_id: null,
    accepted_at: 1_700_000_000_000,
    ...given,
  };
}

/** Acks are taken at once, so that the daemon has nothing left to do when its rows are stored. */
export function deliver(link: ScriptedLink, ...items: readonly HistoryItem[]): void {
  link.automatic.set("ack", () => ({ type: "answered", status: 200, body: {} }));
  for (const item of items) link.options?.onPush({ type: "message", ...item });
}

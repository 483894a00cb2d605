// A stored message as readers get it: how a row of history with its message becomes an item. Stores read the rows.
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import type { DestinationKind } from "@claudemesh/protocol/messages/addresses";
import {
  type EnvelopeVersion,
  isSealedVersion,
  type Meta,
  type Priority,
} from "@claudemesh/protocol/messages/envelope";
import { bodyFields, type HistoryItem } from "@claudemesh/protocol/wire/history-item";

export type StoredItem = {
  readonly history_id: number;
  readonly broker_message_id: string;
  readonly client_message_id: string;
  readonly destination_kind: DestinationKind;
  readonly destination_ref: string;
  readonly sender_pubkey: string;
  readonly accepted_at: Date | number;
  readonly envelope_version: EnvelopeVersion;
  readonly body: Uint8Array;
  /** Canonical JSON, or nothing. */
  readonly meta: string;
  readonly priority: Priority;
  readonly reply_to_id: string | null;
};

export function toHistoryItem(row: StoredItem): HistoryItem {
  return {
    history_id: row.history_id,
    broker_message_id: row.broker_message_id,
    client_message_id: row.client_message_id,
    destination: { kind: row.destination_kind, ref: row.destination_ref },
    sender_pubkey: row.sender_pubkey,
    envelope_version: row.envelope_version,
    ...bodyFields(row.body, isSealedVersion(row.envelope_version)),
    meta: row.meta === "" ? null : (parseOwnJsonText(row.meta) as Meta),
    priority: row.priority,
    reply_to_id: row.reply_to_id,
    accepted_at: Number(row.accepted_at),
  };
}

// A message as it arrives, as it is kept, and as the local API shows it. Opening a sealed body needs keys and comes in
// from outside; storing is the inbox store's.

import type { InboxItem } from "@claudemesh/client/daemon";
import { decodeBase64 } from "@claudemesh/protocol/encoding/base64";
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import type { Meta, Priority } from "@claudemesh/protocol/messages/envelope";
import { type HistoryItem, textOf } from "@claudemesh/protocol/wire/history-item";

/** Opens what a sender sealed for this member; undefined when it cannot be opened. */
export type OpenSealed = (box: { readonly sender: string; readonly sealed: Uint8Array }) => Uint8Array | undefined;

/** What the inbox keeps of a message, less the id and the times that it is given on arrival. */
export type ReceivedMessage = {
  readonly clientMessageId: string;
  readonly brokerMessageId: string;
  readonly historyId: number;
  readonly topic: string | undefined;
  readonly senderPubkey: string;
  readonly priority: Priority;
  readonly meta: string;
  readonly replyToId: string | undefined;
  readonly acceptedAt: number;
  readonly unreadable: boolean;
  readonly body: Uint8Array;
};

/** A stored row, named as its columns. */
export type InboxRecord = {
  readonly id: string;
  readonly client_message_id: string;
  readonly broker_message_id: string;
  readonly history_id: number;
  readonly topic: string | null;
  readonly sender_pubkey: string;
  readonly sender_name: string | null;
  readonly priority: Priority;
  readonly meta: string;
  readonly reply_to_id: string | null;
  readonly received_at: number;
  readonly read_at: number | null;
  readonly unreadable: number;
  readonly body: Uint8Array;
};

const utf8 = new TextEncoder();

export function readMessage(item: HistoryItem, openSealed: OpenSealed): ReceivedMessage {
  const bytes = item.body === undefined ? decodeBase64(item.body_base64 ?? "") : utf8.encode(item.body);
  const sealed = item.envelope_version === "2";
  const opened = bytes !== undefined && sealed ? openSealed({ sender: item.sender_pubkey, sealed: bytes }) : bytes;
  return {
    clientMessageId: item.client_message_id,
    brokerMessageId: item.broker_message_id,
    historyId: item.history_id,
    topic: item.destination.kind === "topic" ? item.destination.ref : undefined,
    senderPubkey: item.sender_pubkey,
    priority: item.priority,
    meta: item.meta === null ? "" : JSON.stringify(item.meta),
    replyToId: item.reply_to_id ?? undefined,
    acceptedAt: item.accepted_at,
    unreadable: opened === undefined,
    body: opened ?? bytes ?? utf8.encode(item.body_base64 ?? ""),
  };
}

/** True where this member is among the recipients: what it sent to a topic is not delivered back to it. */
export function isRecipient(item: HistoryItem, ownPubkey: string): boolean {
  const { kind, ref } = item.destination;
  if (kind === "dm") return ref === ownPubkey;
  return kind === "topic" && item.sender_pubkey !== ownPubkey;
}

export function showInboxItem(
  record: InboxRecord,
  mesh: string,
  nameOf: (pubkey: string) => string | undefined,
): InboxItem {
  return {
    id: record.id,
    client_message_id: record.client_message_id,
    broker_message_id: record.broker_message_id,
    history_id: record.history_id,
    mesh,
    topic: record.topic,
    sender_pubkey: record.sender_pubkey,
    sender_name: nameOf(record.sender_pubkey) ?? record.sender_name,
    ...showBody(record),
    meta: record.meta === "" ? null : (parseOwnJsonText(record.meta) as Meta),
    priority: record.priority,
    reply_to_id: record.reply_to_id,
    received_at: record.received_at,
    read_at: record.read_at,
  };
}

/** Bytes that are no text are shown as base64; a ciphertext that nobody could open is never shown as a message. */
function showBody(record: InboxRecord): {
  readonly body: string | null;
  readonly body_base64?: string;
  readonly unreadable?: true;
} {
  if (record.unreadable === 1) return { body: null, unreadable: true };
  const text = textOf(record.body);
  if (text !== undefined) return { body: text };
  return { body: null, body_base64: Buffer.from(record.body).toString("base64") };
}

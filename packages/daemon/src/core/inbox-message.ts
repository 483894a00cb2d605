// A message as it arrives, as it is stored, and as the local API shows it. Opening a sealed body needs the member's keys, so
// the caller passes in how. Storing is the work of the inbox store.
// Why: docs/decisions/0102.

import type { InboxItem } from "@claudemesh/client/daemon";
import type { Sealer } from "@claudemesh/client/seal";
import { decodeBase64 } from "@claudemesh/protocol/encoding/base64";
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import { isSealedVersion, type Meta, type Priority } from "@claudemesh/protocol/messages/envelope";
import { findRelabelled } from "@claudemesh/protocol/messages/sealed-content";
import { type HistoryItem, textOf } from "@claudemesh/protocol/wire/history-item";

/** Opens what a sender sealed for this member. */
export type OpenSealed = Pick<Sealer, "open" | "openVersion2">;

/**
 * Why the text of a message is not shown. `not_opened`: the sealed body cannot be decrypted. `relabelled`: the broker's labels
 * differ from those inside the sealed body, or name another recipient than this member.
 */
export type Unreadable = "not_opened" | "relabelled";

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
  readonly sealed: boolean;
  readonly fromAgent: string | undefined;
  readonly toAgent: string | undefined;
  readonly unreadable: Unreadable | undefined;
  /** As it came where it is not readable. */
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
  /** 1: not opened. 2: relabelled. */
  readonly unreadable: number;
  /** Null where the message is older than this column. */
  readonly sealed: number | null;
  readonly from_agent: string | null;
  readonly to_agent: string | null;
  readonly body: Uint8Array;
};

const utf8 = new TextEncoder();

/** Reads a message for the member that has this key. */
export function readMessage(item: HistoryItem, ownPubkey: string, sealer: OpenSealed): ReceivedMessage {
  const bytes = item.body === undefined ? decodeBase64(item.body_base64 ?? "") : utf8.encode(item.body);
  const content = bytes === undefined ? notOpened : openContent(item, ownPubkey, sealer, bytes);
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
    sealed: isSealedVersion(item.envelope_version),
    fromAgent: undefined,
    toAgent: undefined,
    unreadable: undefined,
    body: bytes ?? utf8.encode(item.body_base64 ?? ""),
    ...content,
  };
}

type OpenedContent = Partial<Pick<ReceivedMessage, "meta" | "fromAgent" | "toAgent" | "unreadable" | "body">>;

const notOpened = { unreadable: "not_opened" } as const;

/** What the sender sealed, which replaces what the broker says of the message. */
function openContent(item: HistoryItem, ownPubkey: string, sealer: OpenSealed, sealed: Uint8Array): OpenedContent {
  if (!isMeantFor(item, ownPubkey)) return { unreadable: "relabelled", meta: "" };
  if (!isSealedVersion(item.envelope_version)) return {};
  if (item.destination.kind !== "dm") return notOpened;
  const box = { peer: item.sender_pubkey, sealed };
  if (item.envelope_version === "2") {
    const body = sealer.openVersion2(box);
    return body === undefined ? notOpened : { body };
  }
  const content = sealer.open(box);
  // No honest broker has a meta for it.
  if (content === undefined) return { ...notOpened, meta: "" };
  const relabelled = findRelabelled(content, {
    sender: item.sender_pubkey,
    recipient: item.destination.ref,
    clientMessageId: item.client_message_id,
    replyToId: item.reply_to_id ?? undefined,
    priority: item.priority,
    meta: item.meta,
  });
  if (relabelled !== undefined) return { unreadable: "relabelled", meta: "" };
  const { canonicalMeta, fromAgent, toAgent, body } = content;
  return { meta: canonicalMeta, fromAgent, toAgent, body };
}

/** A queue's messages are delivered only to consumers that lease them. Which topics a member is subscribed to only the broker knows. */
function isMeantFor({ destination: { kind, ref } }: HistoryItem, ownPubkey: string): boolean {
  return kind === "topic" || (kind === "dm" && ref === ownPubkey);
}

/** True where this member is among the recipients: what it sent to a topic is not delivered back to it. */
export function isRecipient(item: HistoryItem, ownPubkey: string): boolean {
  return isMeantFor(item, ownPubkey) && (item.destination.kind === "dm" || item.sender_pubkey !== ownPubkey);
}

export function showInboxItem(
  record: InboxRecord,
  mesh: string,
  nameOf: (pubkey: string, remembered?: string) => string | undefined,
): InboxItem {
  return {
    id: record.id,
    client_message_id: record.client_message_id,
    broker_message_id: record.broker_message_id,
    history_id: record.history_id,
    mesh,
    topic: record.topic,
    sender_pubkey: record.sender_pubkey,
    sender_name: nameOf(record.sender_pubkey, record.sender_name ?? undefined) ?? null,
    ...showBody(record),
    sealed: record.sealed === null ? null : record.sealed === 1,
    ...(record.from_agent === null ? {} : { from_agent: record.from_agent }),
    ...(record.to_agent === null ? {} : { to_agent: record.to_agent }),
    meta: record.meta === "" ? null : (parseOwnJsonText(record.meta) as Meta),
    priority: record.priority,
    reply_to_id: record.reply_to_id,
    received_at: record.received_at,
    read_at: record.read_at,
  };
}

/** Bytes that are no text are shown as base64; a ciphertext that could not be opened is never shown as a message. */
function showBody(record: InboxRecord): {
  readonly body: string | null;
  readonly body_base64?: string;
  readonly unreadable?: true | "relabelled";
} {
  if (record.unreadable !== 0) return { body: null, unreadable: record.unreadable === 2 ? "relabelled" : true };
  const text = textOf(record.body);
  if (text !== undefined) return { body: text };
  return { body: null, body_base64: Buffer.from(record.body).toString("base64") };
}

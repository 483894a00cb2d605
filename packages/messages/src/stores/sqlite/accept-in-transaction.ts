// Claim, B2 and B3 on SQLite, inside a transaction that the caller opened with BEGIN IMMEDIATE. That one write lock
// is the mesh's lock: fences, revocations and history ids are all read and written under it. No limiter, no batching.
import { isLiveMember } from "@claudemesh/members/sqlite";
import type { AcceptRefusal } from "@claudemesh/protocol/messages/accept-result";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { answerFromStored } from "../../core/stored-accept.ts";
import type { CommittedAccept, SendToAccept, StoredAccept } from "../../ports.ts";
import { insertQueueMessage } from "./queue-rows.ts";

/** The answer of an id that is consumed; undefined: this send is the first. */
export function answerClaimed(tx: Sqlite, send: SendToAccept): CommittedAccept | undefined {
  const known = answerFromStored(findAccepted(tx, send.meshId, send.clientMessageId), send);
  return known && { result: known, recipients: [] };
}

/**
 * For an id that the same transaction has found free. Every check comes before the first insert, so that a refusal
 * has nothing to undo. A throw (the store failed) rolls back the caller's whole transaction.
 */
export function acceptUnclaimed(tx: Sqlite, send: SendToAccept): CommittedAccept {
  if (isFenced(tx, send.meshId, send.senderPubkey, send.clientMessageId)) {
    return { result: { type: "fenced", clientMessageId: send.clientMessageId }, recipients: [] };
  }
  const refusal = refuseDestination(tx, send);
  if (refusal !== undefined) return { result: { type: "refused", code: refusal }, recipients: [] };

  const historyId = nextHistoryId(tx, send.meshId);
  insertDedupe(tx, send, historyId);
  insertMessage(tx, send, historyId);
  insertHistory(tx, send, historyId);
  const recipients = insertDeliveries(tx, send, historyId);
  insertMentions(tx, send, historyId);
  const { brokerMessageId, clientMessageId } = send;
  return { result: { type: "accepted", brokerMessageId, clientMessageId, historyId }, recipients };
}

type DedupeRow = {
  broker_message_id: string;
  history_id: number;
  request_fingerprint: Uint8Array;
  sender_pubkey: string;
  history_available: number;
  first_seen_at: number;
};

export function findAccepted(db: Sqlite, meshId: string, clientMessageId: string): StoredAccept | undefined {
  const row = db
    .sql<DedupeRow>(
      `SELECT broker_message_id, history_id, request_fingerprint, sender_pubkey, history_available, first_seen_at
       FROM client_message_dedupe WHERE mesh_id = ? AND client_message_id = ?`,
    )
    .get(meshId, clientMessageId);
  if (row === undefined) return undefined;
  return {
    brokerMessageId: row.broker_message_id,
    historyId: row.history_id,
    fingerprint: row.request_fingerprint,
    senderPubkey: row.sender_pubkey,
    historyAvailable: row.history_available === 1,
    firstSeenAtMs: row.first_seen_at,
  };
}

export function isFenced(db: Sqlite, meshId: string, senderPubkey: string, clientMessageId: string): boolean {
  const row = db
    .sql("SELECT 1 FROM client_message_fence WHERE mesh_id = ? AND sender_pubkey = ? AND client_message_id = ?")
    .get(meshId, senderPubkey, clientMessageId);
  return row !== undefined;
}

/** B2. A sender whose membership ended while the send was on its way is refused here, under the lock. */
function refuseDestination(tx: Sqlite, send: SendToAccept): AcceptRefusal | undefined {
  const { meshId, senderPubkey } = send;
  if (!isLiveMember(tx, meshId, senderPubkey)) return "unauthorized";
  const { kind, ref } = send.envelope.destination;
  if (kind === "dm") return isLiveMember(tx, meshId, ref) ? undefined : "destination_not_found";
  if (kind === "queue") {
    const queue = tx.sql("SELECT 1 FROM queue WHERE mesh_id = ? AND id = ?").get(meshId, ref);
    return queue === undefined ? "destination_not_found" : undefined;
  }
  const topic = tx
    .sql<{ post_policy: string }>("SELECT post_policy FROM topic WHERE mesh_id = ? AND name = ?")
    .get(meshId, ref);
  if (topic === undefined) return "destination_not_found";
  if (topic.post_policy === "members") return undefined;
  const subscribed = tx
    .sql("SELECT 1 FROM topic_subscription WHERE mesh_id = ? AND topic = ? AND member_pubkey = ?")
    .get(meshId, ref, senderPubkey);
  return subscribed === undefined ? "not_subscribed" : undefined;
}

/** Read, then written: the write lock is held, and RETURNING would cost a table of its own each time. */
function nextHistoryId(tx: Sqlite, meshId: string): number {
  const last = tx
    .sql<{ last_history_id: number }>("SELECT last_history_id FROM mesh_history_counter WHERE mesh_id = ?")
    .get(meshId)?.last_history_id;
  if (last === undefined) {
    tx.sql("INSERT INTO mesh_history_counter (mesh_id, last_history_id) VALUES (?, 1)").run(meshId);
    return 1;
  }
  tx.sql("UPDATE mesh_history_counter SET last_history_id = ? WHERE mesh_id = ?").run(last + 1, meshId);
  return last + 1;
}

function insertDedupe(tx: Sqlite, send: SendToAccept, historyId: number): void {
  const { kind, ref } = send.envelope.destination;
  tx.sql(
    `INSERT INTO client_message_dedupe (mesh_id, client_message_id, broker_message_id, request_fingerprint,
       destination_kind, destination_ref, sender_pubkey, history_id, first_seen_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    send.meshId,
    send.clientMessageId,
    send.brokerMessageId,
    send.fingerprint,
    kind,
    ref,
    send.senderPubkey,
    historyId,
    send.acceptedAtMs,
    send.expiresAtMs ?? null,
  );
}

function insertMessage(tx: Sqlite, send: SendToAccept, historyId: number): void {
  const { version, destination, body, canonicalMeta, priority, replyToId } = send.envelope;
  const head = [send.meshId, send.brokerMessageId, send.clientMessageId];
  const reply = replyToId ?? null;
  const tail = [send.senderPubkey, version, body, canonicalMeta, priority, reply, send.acceptedAtMs, historyId];
  if (destination.kind === "topic") {
    tx.sql(
      `INSERT INTO topic_message (mesh_id, id, client_message_id, topic,
         sender_pubkey, envelope_version, body, meta, priority, reply_to_id, created_at, history_id)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ).run(...head, destination.ref, ...tail);
    return;
  }
  tx.sql(
    `INSERT INTO message_queue (mesh_id, id, client_message_id, destination_kind, destination_ref,
       sender_pubkey, envelope_version, body, meta, priority, reply_to_id, created_at, history_id)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(...head, destination.kind, destination.ref, ...tail);
}

function insertHistory(tx: Sqlite, send: SendToAccept, historyId: number): void {
  const { kind, ref } = send.envelope.destination;
  tx.sql(
    `INSERT INTO message_history (mesh_id, history_id, broker_message_id, client_message_id,
       destination_kind, destination_ref, sender_pubkey, accepted_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    send.meshId,
    historyId,
    send.brokerMessageId,
    send.clientMessageId,
    kind,
    ref,
    send.senderPubkey,
    send.acceptedAtMs,
  );
}

/** One row per recipient: the addressed member, or every live subscriber but the sender. A queue has one row in all. */
function insertDeliveries(tx: Sqlite, send: SendToAccept, historyId: number): string[] {
  const { kind, ref } = send.envelope.destination;
  if (kind === "queue") {
    insertQueueMessage(tx, send.meshId, ref, historyId, send.brokerMessageId);
    return [];
  }
  const recipients = kind === "dm" ? [ref] : selectSubscribers(tx, send.meshId, ref, send.senderPubkey);
  const insert = tx.sql(
    "INSERT INTO delivery_queue (mesh_id, history_id, recipient_pubkey, broker_message_id) VALUES (?, ?, ?, ?)",
  );
  for (const recipient of recipients) insert.run(send.meshId, historyId, recipient, send.brokerMessageId);
  return recipients;
}

function selectSubscribers(tx: Sqlite, meshId: string, topic: string, senderPubkey: string): string[] {
  const rows = tx
    .sql<{ member_pubkey: string }>(
      `SELECT s.member_pubkey FROM topic_subscription s
       JOIN member m ON m.mesh_id = s.mesh_id AND m.pubkey = s.member_pubkey AND m.revoked_at IS NULL
       WHERE s.mesh_id = ? AND s.topic = ? AND s.member_pubkey <> ?`,
    )
    .all(meshId, topic, senderPubkey);
  return rows.map((row) => row.member_pubkey);
}

function insertMentions(tx: Sqlite, send: SendToAccept, historyId: number): void {
  for (const mentioned of send.mentions) {
    tx.sql(
      "INSERT INTO mention_index (mesh_id, mentioned_pubkey, history_id, broker_message_id) VALUES (?, ?, ?, ?)",
    ).run(send.meshId, mentioned, historyId, send.brokerMessageId);
  }
}

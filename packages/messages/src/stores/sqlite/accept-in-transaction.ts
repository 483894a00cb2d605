// Claims, judges and writes a send on SQLite, inside a transaction that the caller opened with BEGIN IMMEDIATE. That one write lock
// is the mesh's lock: fences, revocations and history ids are all read and written under it. No limiter, no batching.
// Why: docs/decisions/0005.
import type { AcceptRefusal } from "@claudemesh/protocol/messages/accept-result";
import { StorageError } from "@claudemesh/storage/errors";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { answerFromStored } from "../../core/stored-accept.ts";
import type { CommittedAccept, SendToAccept, StoredAccept } from "../../ports.ts";
import { writeMentions } from "../mention-failure.ts";
import type { AcceptBatch, MeshSnapshot } from "./accept-batch.ts";
import { insertQueueMessage } from "./queue-rows.ts";

/** The answer of a consumed id; undefined where this send is the first. */
export function answerClaimed(tx: Sqlite, send: SendToAccept): CommittedAccept | undefined {
  const result = answerFromStored(findAccepted(tx, send.meshId, send.clientMessageId), send);
  return result && { result, recipients: [] };
}

/**
 * A consumed id answers for itself, whatever else is wrong. Every check comes before the first insert, and the claim is
 * the first, so that neither a refusal nor a lost race has anything to undo. A throw (the store failed) rolls back the
 * caller's whole transaction.
 */
export function acceptInBatch(batch: AcceptBatch, send: SendToAccept): CommittedAccept {
  const mesh = batch.mesh(send.meshId);
  const refusal = refuse(mesh, send);
  if (refusal !== undefined) return answerClaimed(batch.tx, send) ?? { result: refusal, recipients: [] };
  const historyId = mesh.nextHistoryId();
  if (!insertDedupe(batch.tx, send, historyId)) return answerConsumed(batch.tx, send);
  mesh.tookHistoryId(historyId);
  return insertEffects(batch.tx, mesh, send, historyId);
}

function answerConsumed(tx: Sqlite, send: SendToAccept): CommittedAccept {
  const claimed = answerClaimed(tx, send);
  if (claimed === undefined) throw new Error("an id that cannot be claimed is consumed");
  return claimed;
}

function refuse(mesh: MeshSnapshot, send: SendToAccept): CommittedAccept["result"] | undefined {
  const { senderPubkey, clientMessageId } = send;
  if (mesh.isFenced(senderPubkey, clientMessageId)) return { type: "fenced", clientMessageId };
  const code = refuseDestination(mesh, send);
  return code && { type: "refused", code };
}

function insertEffects(tx: Sqlite, mesh: MeshSnapshot, send: SendToAccept, historyId: number): CommittedAccept {
  insertMessage(tx, send, historyId);
  insertHistory(tx, send, historyId);
  const recipients = insertDeliveries(tx, mesh, send, historyId);
  insertMentions(tx, send, historyId);
  const { brokerMessageId, clientMessageId } = send;
  return { result: { type: "accepted", brokerMessageId, clientMessageId, historyId }, recipients };
}

/** The fingerprint as text, which the driver returns at half the cost of bytes. */
type DedupeRow = [
  brokerMessageId: string,
  historyId: number,
  fingerprint: string,
  senderPubkey: string,
  historyAvailable: number,
  firstSeenAt: number,
];

export function findAccepted(db: Sqlite, meshId: string, clientMessageId: string): StoredAccept | undefined {
  const row = db
    .sqlTuples<DedupeRow>(
      `SELECT broker_message_id, history_id, hex(request_fingerprint), sender_pubkey, history_available, first_seen_at
       FROM client_message_dedupe WHERE mesh_id = ? AND client_message_id = ?`,
    )
    .get(meshId, clientMessageId);
  if (row === undefined) return undefined;
  const [brokerMessageId, historyId, fingerprintHex, senderPubkey, historyAvailable, firstSeenAtMs] = row;
  return {
    brokerMessageId,
    historyId,
    fingerprint: Buffer.from(fingerprintHex, "hex"),
    senderPubkey,
    historyAvailable: historyAvailable === 1,
    firstSeenAtMs,
  };
}

/** Judges the sender and the destination. A sender whose membership ended meanwhile is refused here, under the lock. */
function refuseDestination(mesh: MeshSnapshot, send: SendToAccept): AcceptRefusal | undefined {
  if (!mesh.isLive(send.senderPubkey)) return "unauthorized";
  const { kind, ref } = send.envelope.destination;
  if (kind === "dm") return mesh.isLive(ref) ? undefined : "destination_not_found";
  if (kind === "queue") return mesh.hasQueue(ref) ? undefined : "destination_not_found";
  const topic = mesh.topic(ref);
  if (topic === undefined) return "destination_not_found";
  if (topic.postPolicy === "members" || topic.isSubscribed(send.senderPubkey)) return undefined;
  return "not_subscribed";
}

/** False where the id is consumed. */
function insertDedupe(tx: Sqlite, send: SendToAccept, historyId: number): boolean {
  const { kind, ref } = send.envelope.destination;
  const { changes } = tx
    .sql(
      `INSERT INTO client_message_dedupe (mesh_id, client_message_id, broker_message_id, request_fingerprint,
         destination_kind, destination_ref, sender_pubkey, history_id, first_seen_at, expires_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (mesh_id, client_message_id) DO NOTHING`,
    )
    .run(
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
  return changes === 1;
}

function insertMessage(tx: Sqlite, send: SendToAccept, historyId: number): void {
  const { version, destination, body, canonicalMeta, priority, replyToId } = send.envelope;
  if (destination.kind === "topic") {
    tx.sql(
      `INSERT INTO topic_message (mesh_id, id, client_message_id, topic, sender_pubkey, envelope_version, body, meta,
         priority, reply_to_id, created_at, history_id)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ).write(
      send.meshId,
      send.brokerMessageId,
      send.clientMessageId,
      destination.ref,
      send.senderPubkey,
      version,
      body,
      canonicalMeta,
      priority,
      replyToId ?? null,
      send.acceptedAtMs,
      historyId,
    );
    return;
  }
  tx.sql(
    `INSERT INTO message_queue (mesh_id, id, client_message_id, destination_kind, destination_ref, sender_pubkey,
       envelope_version, body, meta, priority, reply_to_id, created_at, history_id)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).write(
    send.meshId,
    send.brokerMessageId,
    send.clientMessageId,
    destination.kind,
    destination.ref,
    send.senderPubkey,
    version,
    body,
    canonicalMeta,
    priority,
    replyToId ?? null,
    send.acceptedAtMs,
    historyId,
  );
}

function insertHistory(tx: Sqlite, send: SendToAccept, historyId: number): void {
  const { kind, ref } = send.envelope.destination;
  tx.sql(
    `INSERT INTO message_history (mesh_id, history_id, broker_message_id, client_message_id,
       destination_kind, destination_ref, sender_pubkey, accepted_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  ).write(
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
function insertDeliveries(tx: Sqlite, mesh: MeshSnapshot, send: SendToAccept, historyId: number): readonly string[] {
  const { kind, ref } = send.envelope.destination;
  if (kind === "queue") {
    insertQueueMessage(tx, send.meshId, ref, historyId, send.brokerMessageId);
    return [];
  }
  const recipients = kind === "dm" ? [ref] : (mesh.topic(ref)?.recipientsOf(send.senderPubkey) ?? []);
  mesh.deliveries.add(historyId, send.brokerMessageId, recipients);
  return recipients;
}

function insertMentions(tx: Sqlite, send: SendToAccept, historyId: number): void {
  try {
    for (const mentioned of send.mentions) {
      tx.sql(
        "INSERT INTO mention_index (mesh_id, mentioned_pubkey, history_id, broker_message_id) VALUES (?, ?, ?, ?)",
      ).write(send.meshId, mentioned, historyId, send.brokerMessageId);
    }
  } catch (error) {
    throw error instanceof StorageError ? error.from(writeMentions) : error;
  }
}

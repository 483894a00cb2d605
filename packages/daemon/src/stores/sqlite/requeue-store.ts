// Requeueing on SQLite: the old row is retired and the new one inserted in one transaction, or nothing changes. What may
// be requeued is decided by the core, on the row as it stands inside that transaction.
import type { DestinationKind } from "@claudemesh/protocol/messages/addresses";
import type { EnvelopeVersion, Priority } from "@claudemesh/protocol/messages/envelope";
import type { OutboxStatus } from "@claudemesh/protocol/messages/outbox-row";
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import {
  decideRequeue,
  type RequeueOrder,
  type RequeueOutcome,
  type RequeueTarget,
  type StoredContent,
  type Successor,
} from "../../core/requeue.ts";
import type { RequeueStore } from "../../ports.ts";
import { abortRequeued, bringForward, holdBack, insertSuccessor } from "./outbox-rows.ts";

export function createSqliteRequeueStore(db: Sqlite, commit: GroupCommit): RequeueStore {
  return {
    find: (id) => selectTarget(db, id),
    content: (id) => selectContent(db, id),
    isConsumed: (clientMessageId) => isConsumed(db, clientMessageId),
    requeue: (order) => commit.submit((tx) => requeueRow(tx, order), "outbox"),
    holdBack: (id, untilMs) => commit.submit((tx) => holdBack(tx, id, untilMs)),
    bringForward: (id, dueAtMs) => commit.submit((tx) => bringForward(tx, id, dueAtMs)),
  };
}

type TargetRow = {
  id: string;
  client_message_id: string;
  wire_fingerprint: Uint8Array;
  enqueued_at: number;
  status: OutboxStatus;
  attempts: number;
  unanswered: number;
  fenced: number;
  payload_bytes: number;
  broker_message_id: string | null;
  history_id: number | null;
  superseded_by: string | null;
  envelope_version: EnvelopeVersion;
};

const targetColumns = `id, client_message_id, wire_fingerprint, enqueued_at, status, attempts, unanswered, fenced,
  length(payload) AS payload_bytes, broker_message_id, history_id, superseded_by, envelope_version`;

/** An outbox id goes before a client id that happens to look like one. */
function selectTarget(db: Sqlite, id: string): RequeueTarget | undefined {
  const by = (column: "id" | "client_message_id") =>
    db.sql<TargetRow>(`SELECT ${targetColumns} FROM outbox WHERE ${column} = ?`).get(id);
  const row = by("id") ?? by("client_message_id") ?? selectTombstone(db, id);
  if (row === undefined) return undefined;
  return {
    id: row.id,
    clientMessageId: row.client_message_id,
    wireFingerprint: row.wire_fingerprint,
    enqueuedAt: row.enqueued_at,
    status: row.status,
    attempts: row.attempts,
    unanswered: row.unanswered,
    fenced: row.fenced === 1,
    envelopeVersion: row.envelope_version,
    payloadBytes: row.payload_bytes,
    brokerMessageId: row.broker_message_id ?? undefined,
    historyId: row.history_id ?? undefined,
    successor: row.superseded_by === null ? undefined : selectSuccessor(db, row.superseded_by),
  };
}

function selectTombstone(db: Sqlite, id: string): TargetRow | undefined {
  return db
    .sql<TargetRow>(
      `SELECT id, client_message_id, wire_fingerprint, enqueued_at, 'done' AS status, attempts, 0 AS unanswered,
         0 AS fenced, 0 AS payload_bytes, broker_message_id, history_id, NULL AS superseded_by, envelope_version
       FROM outbox_tombstone WHERE id = ? OR client_message_id = ? ORDER BY id = ? DESC LIMIT 1`,
    )
    .get(id, id, id);
}

function selectSuccessor(db: Sqlite, id: string): Successor | undefined {
  return db
    .sql<Successor>(
      `SELECT id, client_message_id AS clientMessageId, status FROM outbox WHERE id = ?
       UNION ALL
       SELECT id, client_message_id AS clientMessageId, 'done' AS status FROM outbox_tombstone WHERE id = ?`,
    )
    .get(id, id);
}

type ContentRow = {
  to_address: string;
  destination_kind: DestinationKind;
  destination_ref: string;
  priority: Priority;
  meta: string;
  reply_to_id: string | null;
  envelope_version: EnvelopeVersion;
  payload: Uint8Array;
};

function selectContent(db: Sqlite, id: string): StoredContent | undefined {
  const row = db
    .sql<ContentRow>(
      `SELECT to_address, destination_kind, destination_ref, priority, meta, reply_to_id, envelope_version, payload
       FROM outbox WHERE id = ?`,
    )
    .get(id);
  if (row === undefined) return undefined;
  return {
    to: row.to_address,
    destination: { kind: row.destination_kind, ref: row.destination_ref },
    priority: row.priority,
    canonicalMeta: row.meta,
    replyToId: row.reply_to_id ?? undefined,
    envelopeVersion: row.envelope_version,
    body: row.payload,
  };
}

function isConsumed(db: Sqlite, clientMessageId: string): boolean {
  const found = db
    .sql(
      `SELECT 1 FROM outbox WHERE client_message_id = ?
       UNION ALL SELECT 1 FROM outbox_tombstone WHERE client_message_id = ?`,
    )
    .get(clientMessageId, clientMessageId);
  return found !== undefined;
}

function requeueRow(tx: Sqlite, order: RequeueOrder): RequeueOutcome {
  const row = selectTarget(tx, order.oldId);
  if (row === undefined) return { type: "not_found" };
  const decision = decideRequeue(row, order);
  if (decision === "not_requeueable") return { type: decision, row };
  // Before the question of fate: a new id that is taken is refused without troubling the broker.
  if (isConsumed(tx, order.newClientMessageId)) return { type: "client_id_consumed" };
  if (decision === "fate_unknown") return { type: decision };
  insertSuccessor(tx, order);
  abortRequeued(tx, order);
  return { type: "requeued" };
}

// Single messages of the inbox, without their bodies: finding one by an id, and marking it as read. Messages that
// retention has removed answer from what is left of them.
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { InboxEntry } from "../../core/message-facts.ts";
import type { InboxEntries } from "../../ports.ts";

export function createSqliteInboxEntries(db: Sqlite, commit: GroupCommit): InboxEntries {
  return {
    find: (id) => selectEntry(db, id),
    markRead: (id, nowMs) => commit.submit((tx) => markRead(tx, id, nowMs)),
  };
}

type EntryRow = {
  id: string;
  client_message_id: string;
  broker_message_id: string;
  history_id: number;
  received_at: number;
  read_at: number | null;
  sender_pubkey: string | null;
  sender_name: string | null;
  topic: string | null;
  accepted_at: number | null;
};

const keptColumns = "id, client_message_id, broker_message_id, history_id, received_at, read_at";
const liveColumns = `${keptColumns}, sender_pubkey, sender_name, topic, accepted_at`;
const removedSql = `SELECT ${keptColumns}, NULL AS sender_pubkey, NULL AS sender_name, NULL AS topic,
  NULL AS accepted_at FROM inbox_tombstone`;

/** An inbox id goes before a client id that happens to look like one; a client id is that of its latest message. */
function selectEntry(db: Sqlite, id: string): InboxEntry | undefined {
  const row =
    db.sql<EntryRow>(`SELECT ${liveColumns} FROM inbox_message WHERE id = ?`).get(id) ??
    db.sql<EntryRow>(`SELECT ${liveColumns} FROM inbox WHERE client_message_id = ?`).get(id) ??
    db.sql<EntryRow>(`${removedSql} WHERE client_message_id = ? ORDER BY history_id DESC LIMIT 1`).get(id);
  return row === undefined ? undefined : toEntry(row);
}

function toEntry(row: EntryRow): InboxEntry {
  const { sender_pubkey: senderPubkey, accepted_at: acceptedAt } = row;
  return {
    id: row.id,
    clientMessageId: row.client_message_id,
    brokerMessageId: row.broker_message_id,
    historyId: row.history_id,
    receivedAt: row.received_at,
    readAt: row.read_at ?? undefined,
    envelope:
      senderPubkey === null || acceptedAt === null
        ? undefined
        : {
            senderPubkey,
            senderName: row.sender_name ?? undefined,
            topic: row.topic ?? undefined,
            acceptedAt,
          },
  };
}

function markRead(tx: Sqlite, id: string, nowMs: number): InboxEntry | undefined {
  const entry = selectEntry(tx, id);
  if (entry === undefined || entry.readAt !== undefined) return entry;
  const { clientMessageId, brokerMessageId } = entry;
  const tables = entry.envelope === undefined ? ["inbox_tombstone"] : ["inbox", "inbox_earlier"];
  for (const table of tables) {
    tx.sql(
      `UPDATE ${table} SET read_at = ? WHERE client_message_id = ? AND broker_message_id = ? AND read_at IS NULL`,
    ).run(nowMs, clientMessageId, brokerMessageId);
  }
  return { ...entry, readAt: nowMs };
}

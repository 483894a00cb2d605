// What becomes of a message that arrives: one row, however often it is delivered. A message is known by the broker's
// id. The client's id finds it, and belongs to the latest message that has it; an earlier one stays beside it.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { Unreadable } from "../../core/inbox-message.ts";
import type { InboxArrival, InboxInsert } from "../../ports.ts";
import { indexBody, unindexBody } from "./inbox-search.ts";

type Table = "inbox" | "inbox_earlier";

/** Most inboxes have none of them, and then no arrival needs to look for one. */
export type TablesInUse = { tombstones: boolean; earlier: boolean };

export function readTablesInUse(db: Sqlite): TablesInUse {
  const has = (table: string) => db.sql(`SELECT 1 FROM ${table} LIMIT 1`).get() !== undefined;
  return { tombstones: has("inbox_tombstone"), earlier: has("inbox_earlier") };
}

type Arrival = { readonly message: InboxArrival; readonly receivedAt: number; readonly nextId: () => string };

export function takeArrival(tx: Sqlite, inUse: TablesInUse, arrival: Arrival): InboxInsert {
  const { message } = arrival;
  const removed = inUse.tombstones ? selectRemoved(tx, message.clientMessageId) : [];
  if (removed.includes(message.brokerMessageId)) return "known";
  const earlier = inUse.earlier ? selectEarlier(tx, message) : undefined;
  if (earlier !== undefined) return promoteRestored(tx, "inbox_earlier", earlier, arrival);
  if (insertInto(tx, "inbox", arrival)) return removed.length === 0 ? "new" : "reused";
  const holder = selectHolder(tx, message.clientMessageId);
  if (holder.broker_message_id === message.brokerMessageId) return promoteRestored(tx, "inbox", holder, arrival);
  inUse.earlier = true;
  if (message.historyId < holder.history_id) {
    insertInto(tx, "inbox_earlier", arrival);
  } else {
    moveAside(tx, holder.seq);
    insertInto(tx, "inbox", arrival);
  }
  return "reused";
}

type StoredRow = { readonly seq: number; readonly read_at: number | null; readonly restored: number };

function selectRemoved(tx: Sqlite, clientMessageId: string): string[] {
  const select = tx.sql<{ id: string }>(
    "SELECT broker_message_id AS id FROM inbox_tombstone WHERE client_message_id = ?",
  );
  return select.all(clientMessageId).map(({ id }) => id);
}

function selectEarlier(tx: Sqlite, { clientMessageId, brokerMessageId }: InboxArrival): StoredRow | undefined {
  const select = tx.sql<StoredRow>(
    "SELECT seq, read_at, restored FROM inbox_earlier WHERE client_message_id = ? AND broker_message_id = ?",
  );
  return select.get(clientMessageId, brokerMessageId);
}

type Holder = StoredRow & { readonly broker_message_id: string; readonly history_id: number };

function selectHolder(tx: Sqlite, clientMessageId: string): Holder {
  const select = tx.sql<Holder>(
    "SELECT seq, read_at, restored, broker_message_id, history_id FROM inbox WHERE client_message_id = ?",
  );
  const holder = select.get(clientMessageId);
  if (holder === undefined) throw new Error("a client id is refused and nothing has it");
  return holder;
}

// Numbers are not used again while either table has them: the search index refers to rows of both by them.
const insertSql = (table: Table) => `INSERT INTO ${table} (seq, id, client_message_id, broker_message_id, history_id,
    topic, sender_pubkey, sender_name, priority, meta, reply_to_id, accepted_at, received_at, unreadable, restored, sealed,
    from_agent, to_agent, body)
  VALUES (1 + max((SELECT coalesce(max(seq), 0) FROM inbox), (SELECT coalesce(max(seq), 0) FROM inbox_earlier)),
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const insertSqls = {
  inbox: `${insertSql("inbox")} ON CONFLICT (client_message_id) DO NOTHING`,
  inbox_earlier: insertSql("inbox_earlier"),
};

// The id is made inside the transaction, so that ids grow in the order in which rows become visible.
function insertInto(tx: Sqlite, table: Table, { message, receivedAt, nextId }: Arrival): boolean {
  const { changes, lastInsertRowid } = tx
    .sql(insertSqls[table])
    .run(
      nextId(),
      message.clientMessageId,
      message.brokerMessageId,
      message.historyId,
      message.topic ?? null,
      message.senderPubkey,
      message.senderName ?? null,
      message.priority,
      message.meta,
      message.replyToId ?? null,
      message.acceptedAt,
      receivedAt,
      unreadableColumn(message.unreadable),
      message.restored ? 1 : 0,
      message.sealed ? 1 : 0,
      message.fromAgent ?? null,
      message.toAgent ?? null,
      message.body,
    );
  if (changes === 1) indexBody(tx, lastInsertRowid, message.unreadable !== undefined, message.body);
  return changes === 1;
}

function unreadableColumn(unreadable: Unreadable | undefined): number {
  return unreadable === undefined ? 0 : unreadable === "not_opened" ? 1 : 2;
}

/**
 * The rebuild stored a message before the broker delivered it, so no reader has been given it yet. Its row is inserted anew,
 * so that it counts as a new arrival.
 */
function promoteRestored(tx: Sqlite, table: Table, row: StoredRow, arrival: Arrival): InboxInsert {
  const { message } = arrival;
  if (message.restored || row.restored === 0) return "known";
  unindexBody(tx, row.seq);
  tx.sql(`DELETE FROM ${table} WHERE seq = ?`).run(row.seq);
  insertInto(tx, table, arrival);
  tx.sql(`UPDATE ${table} SET read_at = ? WHERE client_message_id = ? AND broker_message_id = ?`).run(
    row.read_at,
    message.clientMessageId,
    message.brokerMessageId,
  );
  return "new";
}

const columns = `seq, id, client_message_id, broker_message_id, history_id, topic, sender_pubkey, sender_name, priority,
  meta, reply_to_id, accepted_at, received_at, read_at, unreadable, restored, sealed, from_agent, to_agent, body`;

function moveAside(tx: Sqlite, seq: number): void {
  tx.sql(`INSERT INTO inbox_earlier (${columns}) SELECT ${columns} FROM inbox WHERE seq = ?`).run(seq);
  tx.sql("DELETE FROM inbox WHERE seq = ?").run(seq);
}

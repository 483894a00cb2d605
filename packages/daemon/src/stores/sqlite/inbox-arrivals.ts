// What becomes of a message that arrives: a row, once, whoever delivers it how often. A message is known by the broker's
// id. The client's id finds it, and belongs to the latest message that has it; an earlier one stays beside it.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { Unreadable } from "../../core/inbox-message.ts";
import type { InboxArrival, InboxInsert } from "../../ports.ts";
import { indexBody, unindexBody } from "./inbox-search.ts";

type Table = "inbox" | "inbox_earlier";

/** Most inboxes have none of them, and then no arrival needs to look for one. */
export type Kept = { tombstones: boolean; earlier: boolean };

export function readKept(db: Sqlite): Kept {
  const has = (table: string) => db.sql(`SELECT 1 FROM ${table} LIMIT 1`).get() !== undefined;
  return { tombstones: has("inbox_tombstone"), earlier: has("inbox_earlier") };
}

type Arrival = { readonly message: InboxArrival; readonly receivedAt: number; readonly nextId: () => string };

export function takeArrival(tx: Sqlite, kept: Kept, arrival: Arrival): InboxInsert {
  const { message } = arrival;
  const removed = kept.tombstones ? selectRemoved(tx, message.clientMessageId) : [];
  if (removed.includes(message.brokerMessageId)) return "known";
  const earlier = kept.earlier ? selectEarlier(tx, message) : undefined;
  if (earlier !== undefined) return promoteRestored(tx, "inbox_earlier", earlier, arrival);
  if (insertInto(tx, "inbox", arrival)) return removed.length === 0 ? "new" : "reused";
  const holder = selectHolder(tx, message.clientMessageId);
  if (holder.broker_message_id === message.brokerMessageId) return promoteRestored(tx, "inbox", holder, arrival);
  kept.earlier = true;
  if (message.historyId < holder.history_id) {
    insertInto(tx, "inbox_earlier", arrival);
  } else {
    moveAside(tx, holder.seq);
    insertInto(tx, "inbox", arrival);
  }
  return "reused";
}

type KnownRow = { readonly seq: number; readonly read_at: number | null; readonly restored: number };

function selectRemoved(tx: Sqlite, clientMessageId: string): string[] {
  const select = tx.sql<{ id: string }>(
    "SELECT broker_message_id AS id FROM inbox_tombstone WHERE client_message_id = ?",
  );
  return select.all(clientMessageId).map(({ id }) => id);
}

function selectEarlier(tx: Sqlite, { clientMessageId, brokerMessageId }: InboxArrival): KnownRow | undefined {
  const select = tx.sql<KnownRow>(
    "SELECT seq, read_at, restored FROM inbox_earlier WHERE client_message_id = ? AND broker_message_id = ?",
  );
  return select.get(clientMessageId, brokerMessageId);
}

type Holder = KnownRow & { readonly broker_message_id: string; readonly history_id: number };

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
 * The rebuild came first to a message that the broker still has to deliver, so nobody has heard of it: it takes its
 * place among the arrivals anew, as the news that it is.
 */
function promoteRestored(tx: Sqlite, table: Table, known: KnownRow, arrival: Arrival): InboxInsert {
  const { message } = arrival;
  if (message.restored || known.restored === 0) return "known";
  unindexBody(tx, known.seq);
  tx.sql(`DELETE FROM ${table} WHERE seq = ?`).run(known.seq);
  insertInto(tx, table, arrival);
  tx.sql(`UPDATE ${table} SET read_at = ? WHERE client_message_id = ? AND broker_message_id = ?`).run(
    known.read_at,
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

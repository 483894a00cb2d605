// Finding what carries a broker's id. No index has it, because it would cost every send and every arrival its share for
// a question that is asked now and then; so rows are walked through from the newest, a bounded number at a time.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { BrokerIdSearch } from "../../ports.ts";

const rowsPerStep = 2_000;

export function createSqliteBrokerIdSearch(outbox: Sqlite, inbox: Sqlite): BrokerIdSearch {
  return {
    outbox: (brokerMessageId, before) => walk(outbox, "outbox", brokerMessageId, before),
    tombstones: (brokerMessageId, before) => walk(outbox, "outbox_tombstone", brokerMessageId, before),
    inbox: (brokerMessageId, before) => walk(inbox, "inbox_message", brokerMessageId, before),
  };
}

function walk(
  db: Sqlite,
  table: "outbox" | "outbox_tombstone" | "inbox_message",
  brokerMessageId: string,
  before: string | undefined,
): { readonly found: string | undefined; readonly before: string | undefined } {
  const row = db
    .sql<{ found: string | null; oldest: string | null; rows: number }>(
      `SELECT max(CASE WHEN broker_message_id = ? THEN id END) AS found, min(id) AS oldest, count(*) AS rows
       FROM (SELECT id, broker_message_id FROM ${table} WHERE id < ? ORDER BY id DESC LIMIT ${rowsPerStep})`,
    )
    // Behind every ULID.
    .get(brokerMessageId, before ?? "~");
  const isLast = row === undefined || row.rows < rowsPerStep;
  return { found: row?.found ?? undefined, before: isLast ? undefined : (row.oldest ?? undefined) };
}

// How far each named reader of the inbox has come. It is stored in the database of the messages, because a position means
// nothing without them: both are copied, restored and lost together.
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { acknowledge, beforeAll, offer, type ReaderProgress } from "../../core/reader-progress.ts";
import type { InboxReaders, ReaderAsk, ReaderPage } from "../../ports.ts";
import { countUnread, listRows, listRowsBefore, unreadOnly } from "./inbox-reading.ts";
import { selectLastId } from "./inbox-store.ts";

/** Callers choose the names, so there could be any number; the reader that was unused for the longest time is forgotten. */
const readersMax = 1_024;

export function createSqliteInboxReaders(commit: GroupCommit): InboxReaders {
  return { next: (ask, nowMs) => commit.submit((tx) => takeNext(tx, ask, nowMs)) };
}

function takeNext(tx: Sqlite, { reader, acknowledge: upTo, limit }: ReaderAsk, nowMs: number): ReaderPage {
  const stored = selectProgress(tx, reader);
  const before = stored ?? progressAtNewest(tx, limit);
  const reached = acknowledge(before, upTo);
  const { items } = listRows(tx, unreadOnly, { after: reached.position, limit });
  const last = items.at(-1)?.id ?? reached.position;
  const after = offer(reached, last);
  if (stored === undefined) makeRoom(tx);
  // The progress of a new reader is stored too: if the answer is lost, it has to be offered the same messages again.
  if (stored === undefined || after.position !== stored.position || after.offered !== stored.offered) {
    putProgress(tx, reader, after, nowMs);
  }
  return {
    items,
    offeredBefore: before.offered,
    position: reached.position,
    waiting: countUnread(tx, "id > ?", last),
    older: countUnread(tx, "id < ?", after.startsAt),
    startsAt: after.startsAt,
  };
}

/** A new reader begins right before the newest page of unread messages, so that a full inbox hides nothing new. */
function progressAtNewest(tx: Sqlite, limit: number): ReaderProgress {
  const first = listRowsBefore(tx, unreadOnly, { before: undefined, limit }).items[0]?.id;
  const position = (first === undefined ? selectLastId(tx) : selectIdBefore(tx, first)) ?? beforeAll;
  return { startsAt: first ?? position, position, offered: position };
}

function selectIdBefore(tx: Sqlite, id: string): string | undefined {
  return tx.sql<{ id: string }>("SELECT id FROM inbox_message WHERE id < ? ORDER BY id DESC LIMIT 1").get(id)?.id;
}

type ProgressRow = { readonly starts_at: string; readonly position: string; readonly offered: string };

function selectProgress(tx: Sqlite, name: string): ReaderProgress | undefined {
  const select = tx.sql<ProgressRow>("SELECT starts_at, position, offered FROM inbox_reader WHERE name = ?");
  const row = select.get(name);
  return row === undefined ? undefined : { startsAt: row.starts_at, position: row.position, offered: row.offered };
}

function putProgress(tx: Sqlite, name: string, { startsAt, position, offered }: ReaderProgress, nowMs: number): void {
  tx.sql(
    `INSERT INTO inbox_reader (name, starts_at, position, offered, used_at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET position = excluded.position, offered = excluded.offered, used_at = excluded.used_at`,
  ).run(name, startsAt, position, offered, nowMs);
}

function makeRoom(tx: Sqlite): void {
  tx.sql(
    `DELETE FROM inbox_reader WHERE name IN
       (SELECT name FROM inbox_reader ORDER BY used_at DESC LIMIT -1 OFFSET ?)`,
  ).run(readersMax - 1);
}

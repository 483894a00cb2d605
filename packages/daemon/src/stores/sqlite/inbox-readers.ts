// Programs that read the inbox and how far each has come, beside the messages themselves: a position means nothing without
// them, and both are copied, restored and lost together.
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { acknowledge, beforeAll, offer, type ReaderPlace } from "../../core/reader-place.ts";
import type { InboxReaders, ReaderAsk, ReaderPage } from "../../ports.ts";
import { countUnread, listRows, listRowsBefore, unreadOnly } from "./inbox-reading.ts";
import { selectLastId } from "./inbox-store.ts";

/** Names are chosen by callers, so that there could be any number; the one that was not used for longest is forgotten. */
const readersMax = 1_024;

export function createSqliteInboxReaders(commit: GroupCommit): InboxReaders {
  return { next: (ask, nowMs) => commit.submit((tx) => takeNext(tx, ask, nowMs)) };
}

function takeNext(tx: Sqlite, { reader, acknowledge: upTo, limit }: ReaderAsk, nowMs: number): ReaderPage {
  const known = selectPlace(tx, reader);
  const before = known ?? placeOfNewest(tx, limit);
  const reached = acknowledge(before, upTo);
  const { items } = listRows(tx, unreadOnly, { after: reached.position, limit });
  const last = items.at(-1)?.id ?? reached.position;
  const after = offer(reached, last);
  if (known === undefined) makeRoom(tx);
  // The position of a new reader too: what it is offered first has to be there again when the answer is lost.
  if (known === undefined || after.position !== known.position || after.offered !== known.offered) {
    putPlace(tx, reader, after, nowMs);
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

/** Right before the newest page of what is unread, so that a full inbox does not hide what has just arrived. */
function placeOfNewest(tx: Sqlite, limit: number): ReaderPlace {
  const first = listRowsBefore(tx, unreadOnly, { before: undefined, limit }).items[0]?.id;
  const position = (first === undefined ? selectLastId(tx) : selectIdBefore(tx, first)) ?? beforeAll;
  return { startsAt: first ?? position, position, offered: position };
}

function selectIdBefore(tx: Sqlite, id: string): string | undefined {
  return tx.sql<{ id: string }>("SELECT id FROM inbox_message WHERE id < ? ORDER BY id DESC LIMIT 1").get(id)?.id;
}

type PlaceRow = { readonly starts_at: string; readonly position: string; readonly offered: string };

function selectPlace(tx: Sqlite, name: string): ReaderPlace | undefined {
  const select = tx.sql<PlaceRow>("SELECT starts_at, position, offered FROM inbox_reader WHERE name = ?");
  const row = select.get(name);
  return row === undefined ? undefined : { startsAt: row.starts_at, position: row.position, offered: row.offered };
}

function putPlace(tx: Sqlite, name: string, { startsAt, position, offered }: ReaderPlace, nowMs: number): void {
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

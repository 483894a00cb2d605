// Reports every change of an outbox row's status. SQLite itself notices them, through triggers that exist only while there
// are watchers: so no way of changing a row can be forgotten here, and without watchers a send costs nothing.
import type { OutboxStatus } from "@claudemesh/protocol/messages/outbox-row";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { OutboxChange, WatchOutbox } from "../../ports.ts";

const createTriggers = `
  CREATE TEMP TRIGGER outbox_watch_insert AFTER INSERT ON main.outbox
    BEGIN SELECT outbox_changed(NEW.id, NEW.client_message_id, NEW.status, 1); END;
  CREATE TEMP TRIGGER outbox_watch_update AFTER UPDATE OF status ON main.outbox WHEN NEW.status IS NOT OLD.status
    BEGIN SELECT outbox_changed(NEW.id, NEW.client_message_id, NEW.status, 0); END;`;
const dropTriggers = "DROP TRIGGER temp.outbox_watch_insert; DROP TRIGGER temp.outbox_watch_update;";

type Reported = { readonly change: OutboxChange; readonly isInsert: boolean };

export function createOutboxWatch(db: Sqlite): WatchOutbox {
  const watchers = new Set<(change: OutboxChange) => void>();
  let changes: Reported[] = [];
  const publish = () => {
    const reported = changes;
    changes = [];
    if (watchers.size === 0) return;
    for (const change of withoutRolledBack(db, reported)) {
      for (const onChange of watchers) onChange(change);
    }
  };
  db.connection.function(
    "outbox_changed",
    (id: unknown, clientMessageId: unknown, status: unknown, isInsert: unknown) => {
      // A transaction begins and ends within one turn, so that by the next tick it is committed or rolled back.
      if (changes.length === 0) process.nextTick(publish);
      const change = {
        id: String(id),
        client_message_id: String(clientMessageId),
        status: String(status) as OutboxStatus,
      };
      changes.push({ change, isInsert: isInsert === 1 });
      return null;
    },
  );
  return (onChange) => {
    if (watchers.size === 0) db.exec(createTriggers);
    watchers.add(onChange);
    return () => {
      if (watchers.delete(onChange) && watchers.size === 0 && db.connection.isOpen) db.exec(dropTriggers);
    };
  };
}

/** A batch that failed runs again job by job, and its triggers fire again. So each status is reported once, and only where the database has it. */
function withoutRolledBack(db: Sqlite, changes: readonly Reported[]): OutboxChange[] {
  const published = new Map<string, OutboxStatus>();
  return changes.flatMap(({ change, isInsert }) => {
    const { id, status } = change;
    if (published.get(id) === status) return [];
    const row = db.sql<{ status: OutboxStatus }>("SELECT status FROM outbox WHERE id = ?").get(id);
    if (row?.status !== status) return [];
    published.set(id, status);
    // A row that the transaction which inserts it also claims was pending first, which no watcher has seen.
    return isInsert && status === "inflight" ? [{ ...change, status: "pending" }, change] : [change];
  });
}

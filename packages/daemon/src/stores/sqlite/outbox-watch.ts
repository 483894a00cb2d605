// Telling of every change of an outbox row's status. SQLite itself reports them, through triggers that exist only while
// somebody watches: so no way of changing a row can be forgotten here, and a send that nobody watches costs nothing.
import type { OutboxStatus } from "@claudemesh/protocol/messages/outbox-row";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { OutboxChange, WatchOutbox } from "../../ports.ts";

const createTriggers = `
  CREATE TEMP TRIGGER outbox_watch_insert AFTER INSERT ON main.outbox
    BEGIN SELECT outbox_changed(NEW.id, NEW.client_message_id, NEW.status); END;
  CREATE TEMP TRIGGER outbox_watch_update AFTER UPDATE OF status ON main.outbox WHEN NEW.status IS NOT OLD.status
    BEGIN SELECT outbox_changed(NEW.id, NEW.client_message_id, NEW.status); END;`;
const dropTriggers = "DROP TRIGGER temp.outbox_watch_insert; DROP TRIGGER temp.outbox_watch_update;";

export function createOutboxWatch(db: Sqlite): WatchOutbox {
  const watchers = new Set<(change: OutboxChange) => void>();
  let changes: OutboxChange[] = [];
  const publish = () => {
    const reported = changes;
    changes = [];
    if (watchers.size === 0) return;
    for (const change of withoutRolledBack(db, reported)) {
      for (const onChange of watchers) onChange(change);
    }
  };
  db.connection.function("outbox_changed", (id: unknown, clientMessageId: unknown, status: unknown) => {
    // A transaction begins and ends within one turn, so that by the next tick it is committed or rolled back.
    if (changes.length === 0) process.nextTick(publish);
    changes.push({
      id: String(id),
      client_message_id: String(clientMessageId),
      status: String(status) as OutboxStatus,
    });
    return null;
  });
  return (onChange) => {
    if (watchers.size === 0) db.exec(createTriggers);
    watchers.add(onChange);
    return () => {
      if (watchers.delete(onChange) && watchers.size === 0 && db.connection.isOpen) db.exec(dropTriggers);
    };
  };
}

/** A batch that failed runs again job by job, and reports again: what is told is what the database says, once. */
function withoutRolledBack(db: Sqlite, changes: readonly OutboxChange[]): OutboxChange[] {
  const told = new Map<string, OutboxStatus>();
  return changes.filter(({ id, status }) => {
    if (told.get(id) === status) return false;
    const row = db.sql<{ status: OutboxStatus }>("SELECT status FROM outbox WHERE id = ?").get(id);
    if (row?.status !== status) return false;
    told.set(id, status);
    return true;
  });
}

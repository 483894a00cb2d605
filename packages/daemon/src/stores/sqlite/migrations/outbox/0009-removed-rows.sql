-- What went from the outbox in no way that the daemon has: rows end as tombstones and tombstones stay, so that whatever else is
-- deleted was deleted by another program. The audit names these; without a note such a send would look as if it had gone to the
-- broker past the outbox. Kept for as long as the outbox; a row that is put back counts as there.
CREATE TABLE outbox_removed (
  client_message_id TEXT NOT NULL PRIMARY KEY,
  id TEXT NOT NULL,
  -- 'pruned': its tombstone was removed.
  status TEXT NOT NULL,
  broker_message_id TEXT,
  -- By the clock of the program that removed it.
  removed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The time is written so that old builds of SQLite know it too: whatever opens the file runs this.
CREATE TRIGGER outbox_row_removed AFTER DELETE ON outbox
WHEN NOT EXISTS (SELECT 1 FROM outbox_tombstone WHERE client_message_id = OLD.client_message_id)
BEGIN
  INSERT OR REPLACE INTO outbox_removed (client_message_id, id, status, broker_message_id, removed_at)
  VALUES (OLD.client_message_id, OLD.id, OLD.status, OLD.broker_message_id,
    CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;

CREATE TRIGGER outbox_tombstone_removed AFTER DELETE ON outbox_tombstone
BEGIN
  INSERT OR REPLACE INTO outbox_removed (client_message_id, id, status, broker_message_id, removed_at)
  VALUES (OLD.client_message_id, OLD.id, 'pruned', OLD.broker_message_id,
    CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;

-- How far housekeeping is with each mesh. No message stands at or below removed_up_to any more, and checked_at is when
-- the mesh was last looked through for rows that do not fit together.
CREATE TABLE mesh_housekeeping (
  mesh_id TEXT NOT NULL PRIMARY KEY,
  removed_up_to INTEGER NOT NULL,
  checked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What may be forgotten, in the order of time: a new row goes to the end. Dedupe rows have no such index, which would
-- cost every accept: they are looked through now and then.
CREATE INDEX client_message_fence_expires_idx ON client_message_fence (mesh_id, expires_at)
  WHERE expires_at IS NOT NULL;
CREATE INDEX queue_lease_expiry ON queue_lease (mesh_id, expires_at);

-- What belongs to a message is found by its place in history.
CREATE INDEX mention_index_history ON mention_index (mesh_id, history_id);
ALTER TABLE queue_settlement ADD COLUMN history_id INTEGER NOT NULL DEFAULT 0;
UPDATE queue_settlement SET history_id = m.history_id FROM message_queue m
WHERE m.mesh_id = queue_settlement.mesh_id AND m.id = queue_settlement.broker_message_id;
CREATE INDEX queue_settlement_history ON queue_settlement (mesh_id, history_id);

-- How many messages each member sent in each hour, for dashboards. Counted from history behind the accepts; nothing
-- that decides on an accept reads it.
CREATE TABLE rate_limit_counter (
  mesh_id TEXT NOT NULL,
  window_start INTEGER NOT NULL,
  sender_pubkey TEXT NOT NULL,
  accepted INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, window_start, sender_pubkey)
) STRICT, WITHOUT ROWID;

CREATE TABLE rate_limit_counter_cursor (
  mesh_id TEXT NOT NULL PRIMARY KEY,
  counted_up_to INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

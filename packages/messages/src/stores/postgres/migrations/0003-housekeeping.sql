-- How far housekeeping is with each mesh. No message stands at or below removed_up_to any more, and checked_at is when
-- the mesh was last looked through for rows that do not fit together. Whoever keeps a mesh in order holds its row.
CREATE TABLE mesh.mesh_housekeeping (
  mesh_id uuid NOT NULL PRIMARY KEY,
  removed_up_to bigint NOT NULL,
  checked_at timestamptz NOT NULL
);

-- What may be forgotten, in the order of time: a new row goes to the end. A range per block would be cheaper to write,
-- but each bounded step of forgetting would read again what the steps before it left dead.
DROP INDEX mesh.client_message_dedupe_expires_idx;
CREATE INDEX client_message_dedupe_expires_idx ON mesh.client_message_dedupe (mesh_id, expires_at)
  WHERE expires_at IS NOT NULL;
CREATE INDEX client_message_fence_expires_idx ON mesh.client_message_fence (mesh_id, expires_at)
  WHERE expires_at IS NOT NULL;
CREATE INDEX queue_lease_expiry ON mesh.queue_lease (mesh_id, expires_at);

-- What belongs to a message is found by its place in history.
CREATE INDEX mention_index_history ON mesh.mention_index (mesh_id, history_id);
ALTER TABLE mesh.queue_settlement ADD COLUMN history_id bigint NOT NULL DEFAULT 0;
UPDATE mesh.queue_settlement s SET history_id = h.history_id FROM mesh.message_history h
WHERE h.mesh_id = s.mesh_id AND h.broker_message_id = s.broker_message_id;
CREATE INDEX queue_settlement_history ON mesh.queue_settlement (mesh_id, history_id);

-- How many messages each member sent in each hour, for dashboards. Counted from history behind the accepts; nothing
-- that decides on an accept reads it.
CREATE TABLE mesh.rate_limit_counter (
  mesh_id uuid NOT NULL,
  window_start timestamptz NOT NULL,
  sender_pubkey text COLLATE "C" NOT NULL,
  accepted bigint NOT NULL,
  PRIMARY KEY (mesh_id, window_start, sender_pubkey)
);

CREATE TABLE mesh.rate_limit_counter_cursor (
  mesh_id uuid NOT NULL PRIMARY KEY,
  counted_up_to bigint NOT NULL
);

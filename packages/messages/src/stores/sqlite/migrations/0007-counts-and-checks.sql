-- How many messages each topic has had, counted from history behind the accepts, together with the rates. Nothing that
-- decides on an accept reads it.
CREATE TABLE topic_counter (
  mesh_id TEXT NOT NULL,
  topic TEXT NOT NULL,
  messages INTEGER NOT NULL,
  last_message_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, topic)
) STRICT, WITHOUT ROWID;
INSERT INTO topic_counter (mesh_id, topic, messages, last_message_at)
SELECT h.mesh_id, h.destination_ref, count(*), max(h.accepted_at)
FROM message_history h JOIN rate_limit_counter_cursor r ON r.mesh_id = h.mesh_id
WHERE h.destination_kind = 'topic' AND h.history_id <= r.counted_up_to
GROUP BY h.mesh_id, h.destination_ref;

-- What the last look through a mesh for rows that do not fit together has found: how many, and the rules that they break.
ALTER TABLE mesh_housekeeping ADD COLUMN check_ended_at INTEGER;
ALTER TABLE mesh_housekeeping ADD COLUMN check_found INTEGER;
ALTER TABLE mesh_housekeeping ADD COLUMN check_rules TEXT;

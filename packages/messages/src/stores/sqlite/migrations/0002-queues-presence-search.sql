-- Lists in checks are written with OR: SQLite builds a table for every IN, at every insert.
-- Where a stored message stands in history, so that it is found by its id without an index of its own.
ALTER TABLE topic_message ADD COLUMN history_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE message_queue ADD COLUMN history_id INTEGER NOT NULL DEFAULT 0;
UPDATE topic_message SET history_id = h.history_id FROM message_history h
WHERE h.mesh_id = topic_message.mesh_id AND h.broker_message_id = topic_message.id;
UPDATE message_queue SET history_id = h.history_id FROM message_history h
WHERE h.mesh_id = message_queue.mesh_id AND h.broker_message_id = message_queue.id;

-- One row per message sent to a queue, appended in history order with the accept. Its states and the steps between
-- them are in core/queue-message.ts; a lease that ran out may still be written here as leased.
CREATE TABLE queue_message (
  mesh_id TEXT NOT NULL,
  queue TEXT NOT NULL,
  history_id INTEGER NOT NULL,
  broker_message_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state = 'ready' OR state = 'leased' OR state = 'parked' OR state = 'acked' OR state = 'expired'),
  deliveries INTEGER NOT NULL,
  lease_holder TEXT,
  lease_token TEXT,
  lease_expires_at INTEGER,
  parked_at INTEGER,
  settled_at INTEGER,
  PRIMARY KEY (mesh_id, queue, history_id),
  CHECK ((state = 'leased' OR state = 'acked') = (lease_token IS NOT NULL)),
  CHECK ((lease_holder IS NULL) = (lease_token IS NULL)),
  CHECK ((state = 'leased') = (lease_expires_at IS NOT NULL)),
  CHECK ((state = 'parked') = (parked_at IS NOT NULL)),
  CHECK ((state = 'acked' OR state = 'expired') = (settled_at IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX queue_message_ready ON queue_message (mesh_id, queue, history_id) WHERE state = 'ready';
CREATE INDEX queue_message_parked ON queue_message (mesh_id, queue, history_id) WHERE state = 'parked';
CREATE INDEX queue_message_expiry ON queue_message (mesh_id, queue, lease_expires_at) WHERE state = 'leased';
CREATE INDEX queue_message_held ON queue_message (mesh_id, lease_holder, lease_token, history_id) WHERE state = 'leased';

INSERT INTO queue_message (mesh_id, queue, history_id, broker_message_id, state, deliveries)
SELECT mesh_id, destination_ref, history_id, broker_message_id, 'ready', 0
FROM message_history WHERE destination_kind = 'queue';

-- What a consumer asked for and the token it got, so that the same request gets the same answer. An answer without
-- messages leaves no row.
CREATE TABLE queue_lease (
  mesh_id TEXT NOT NULL,
  queue TEXT NOT NULL,
  holder_pubkey TEXT NOT NULL,
  lease_request_id TEXT NOT NULL,
  lease_token TEXT NOT NULL,
  max_messages INTEGER NOT NULL,
  lease_seconds INTEGER NOT NULL,
  leased_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, queue, holder_pubkey, lease_request_id)
) STRICT, WITHOUT ROWID;

-- What a token settled, so that it stays settled for whoever asks again, however often the message moved on since.
CREATE TABLE queue_settlement (
  mesh_id TEXT NOT NULL,
  queue TEXT NOT NULL,
  lease_token TEXT NOT NULL,
  broker_message_id TEXT NOT NULL,
  holder_pubkey TEXT NOT NULL,
  settlement TEXT NOT NULL CHECK (settlement = 'acked' OR settlement = 'nacked'),
  settled_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, queue, lease_token, broker_message_id)
) STRICT, WITHOUT ROWID;

-- Who is connected. A row counts until expires_at, whether or not it has been swept.
CREATE TABLE presence_lease (
  mesh_id TEXT NOT NULL,
  member_pubkey TEXT NOT NULL,
  connection_id TEXT NOT NULL,
  connected_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, member_pubkey, connection_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE member_profile (
  mesh_id TEXT NOT NULL,
  member_pubkey TEXT NOT NULL,
  summary TEXT NOT NULL,
  status TEXT NOT NULL,
  visible INTEGER NOT NULL CHECK (visible = 0 OR visible = 1),
  avatar TEXT NOT NULL,
  title TEXT NOT NULL,
  bio TEXT NOT NULL,
  capabilities TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, member_pubkey)
) STRICT, WITHOUT ROWID;

-- The words of messages in clear text. A row's number is its mesh's number times 2^40 plus its history_id, so that a
-- search looks at one mesh and one stretch of history only. The text itself stays in the message tables.
CREATE VIRTUAL TABLE message_search USING fts5 (body, content = '', contentless_delete = 1, tokenize = 'unicode61');
-- Merging is done in small portions with every step of the indexer, never all at once within one.
INSERT INTO message_search (message_search, rank) VALUES ('automerge', 0), ('crisismerge', 1000);

-- How far the index of each mesh is. Numbers are given once, under the write lock.
CREATE TABLE message_search_cursor (
  mesh_id TEXT NOT NULL PRIMARY KEY,
  mesh_number INTEGER NOT NULL,
  indexed_up_to INTEGER NOT NULL,
  stepped_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

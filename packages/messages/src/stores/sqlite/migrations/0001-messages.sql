-- Lists in checks are written with OR: SQLite builds a table for every IN, at every insert.
-- The claim of a send. A row exists exactly when the accept transaction committed.
-- client_message_id is chosen by callers and may be random, so it is a key here and nowhere else.
CREATE TABLE client_message_dedupe (
  mesh_id TEXT NOT NULL,
  client_message_id TEXT NOT NULL,
  broker_message_id TEXT NOT NULL,
  request_fingerprint BLOB NOT NULL CHECK (length(request_fingerprint) = 32),
  destination_kind TEXT NOT NULL CHECK (destination_kind = 'topic' OR destination_kind = 'dm' OR destination_kind = 'queue'),
  destination_ref TEXT NOT NULL,
  sender_pubkey TEXT NOT NULL,
  history_id INTEGER NOT NULL,
  first_seen_at INTEGER NOT NULL,
  expires_at INTEGER,
  history_available INTEGER NOT NULL DEFAULT 1 CHECK (history_available = 0 OR history_available = 1),
  PRIMARY KEY (mesh_id, client_message_id)
) STRICT, WITHOUT ROWID;

-- An id that its sender has given up: whatever of it is still on its way can never commit.
CREATE TABLE client_message_fence (
  mesh_id TEXT NOT NULL,
  sender_pubkey TEXT NOT NULL,
  client_message_id TEXT NOT NULL,
  request_fingerprint BLOB NOT NULL,
  fenced_at INTEGER NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (mesh_id, sender_pubkey, client_message_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE topic_message (
  mesh_id TEXT NOT NULL,
  id TEXT NOT NULL,
  client_message_id TEXT NOT NULL,
  topic TEXT NOT NULL,
  sender_pubkey TEXT NOT NULL,
  envelope_version TEXT NOT NULL,
  body BLOB NOT NULL,
  meta TEXT NOT NULL,
  priority TEXT NOT NULL,
  reply_to_id TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, id)
) STRICT;

-- Direct messages and messages to queues.
CREATE TABLE message_queue (
  mesh_id TEXT NOT NULL,
  id TEXT NOT NULL,
  client_message_id TEXT NOT NULL,
  destination_kind TEXT NOT NULL CHECK (destination_kind = 'dm' OR destination_kind = 'queue'),
  destination_ref TEXT NOT NULL,
  sender_pubkey TEXT NOT NULL,
  envelope_version TEXT NOT NULL,
  body BLOB NOT NULL,
  meta TEXT NOT NULL,
  priority TEXT NOT NULL,
  reply_to_id TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, id)
) STRICT;

-- One number per mesh that grows in commit order, because it is taken under the write lock of the transaction.
CREATE TABLE mesh_history_counter (
  mesh_id TEXT NOT NULL PRIMARY KEY,
  last_history_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE message_history (
  mesh_id TEXT NOT NULL,
  history_id INTEGER NOT NULL,
  broker_message_id TEXT NOT NULL,
  client_message_id TEXT NOT NULL,
  destination_kind TEXT NOT NULL,
  destination_ref TEXT NOT NULL,
  sender_pubkey TEXT NOT NULL,
  accepted_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, history_id)
) STRICT, WITHOUT ROWID;

-- One row per recipient, appended in history order; the partial index finds what a recipient has not confirmed.
CREATE TABLE delivery_queue (
  mesh_id TEXT NOT NULL,
  history_id INTEGER NOT NULL,
  recipient_pubkey TEXT NOT NULL,
  broker_message_id TEXT NOT NULL,
  settled_at INTEGER,
  outcome TEXT CHECK (outcome = 'delivered' OR outcome = 'expired'),
  PRIMARY KEY (mesh_id, history_id, recipient_pubkey),
  CHECK ((settled_at IS NULL) = (outcome IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_queue_unsettled ON delivery_queue (mesh_id, recipient_pubkey, history_id) WHERE settled_at IS NULL;

CREATE TABLE mention_index (
  mesh_id TEXT NOT NULL,
  mentioned_pubkey TEXT NOT NULL,
  history_id INTEGER NOT NULL,
  broker_message_id TEXT NOT NULL,
  PRIMARY KEY (mesh_id, mentioned_pubkey, history_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE topic (
  mesh_id TEXT NOT NULL,
  name TEXT NOT NULL,
  post_policy TEXT NOT NULL CHECK (post_policy = 'members' OR post_policy = 'subscribers'),
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE topic_subscription (
  mesh_id TEXT NOT NULL,
  topic TEXT NOT NULL,
  member_pubkey TEXT NOT NULL,
  subscribed_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, topic, member_pubkey)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue (
  mesh_id TEXT NOT NULL,
  id TEXT NOT NULL,
  max_deliveries INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, id)
) STRICT, WITHOUT ROWID;

-- The embedded limiter: what a mesh has spent in a window, and which ids that covers.
CREATE TABLE rate_limit_window (
  mesh_id TEXT NOT NULL,
  window_start INTEGER NOT NULL,
  used INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, window_start)
) STRICT, WITHOUT ROWID;

CREATE TABLE rate_limit_id (
  mesh_id TEXT NOT NULL,
  window_start INTEGER NOT NULL,
  client_message_id TEXT NOT NULL,
  PRIMARY KEY (mesh_id, window_start, client_message_id)
) STRICT, WITHOUT ROWID;

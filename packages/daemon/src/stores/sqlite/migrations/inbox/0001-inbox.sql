-- Messages received, once each. Ids grow in the order of arrival, so that a page never misses a later row. `body` is
-- the opened text or bytes, or the ciphertext where `unreadable` is 1; it stands last because it is the large one.
CREATE TABLE inbox (
  id TEXT NOT NULL PRIMARY KEY,
  client_message_id TEXT NOT NULL UNIQUE,
  broker_message_id TEXT NOT NULL,
  history_id INTEGER NOT NULL,
  topic TEXT,
  sender_pubkey TEXT NOT NULL,
  -- The name that the sender had when the message came, where it was known.
  sender_name TEXT,
  priority TEXT NOT NULL,
  meta TEXT NOT NULL,
  reply_to_id TEXT,
  accepted_at INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  read_at INTEGER,
  unreadable INTEGER NOT NULL DEFAULT 0,
  -- 1: came back through history after the inbox was lost, and fires nothing.
  restored INTEGER NOT NULL DEFAULT 0,
  body BLOB NOT NULL
) STRICT;

CREATE INDEX inbox_topic ON inbox (topic, id) WHERE topic IS NOT NULL;
CREATE INDEX inbox_sender ON inbox (sender_pubkey, id);
CREATE INDEX inbox_unreadable ON inbox (id) WHERE unreadable = 1;

CREATE TABLE inbox_state (
  key TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Each message gets a number that no rewrite of the file changes, because the search index refers to it. Numbers grow
-- with ids.
CREATE TABLE inbox_numbered (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
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

INSERT INTO inbox_numbered (id, client_message_id, broker_message_id, history_id, topic, sender_pubkey, sender_name,
    priority, meta, reply_to_id, accepted_at, received_at, read_at, unreadable, restored, body)
  SELECT id, client_message_id, broker_message_id, history_id, topic, sender_pubkey, sender_name,
    priority, meta, reply_to_id, accepted_at, received_at, read_at, unreadable, restored, body
  FROM inbox ORDER BY id;

DROP TABLE inbox;
ALTER TABLE inbox_numbered RENAME TO inbox;

CREATE INDEX inbox_topic ON inbox (topic, id) WHERE topic IS NOT NULL;
CREATE INDEX inbox_sender ON inbox (sender_pubkey, id);
CREATE INDEX inbox_unreadable ON inbox (id) WHERE unreadable = 1;

-- Words of the bodies that are text, by the message's number. The text itself stays in the inbox alone.
CREATE VIRTUAL TABLE inbox_search USING fts5(
  body, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);

-- Only the program can tell text from other bytes: it indexes what is here already, from this number down.
INSERT INTO inbox_state (key, value)
  SELECT 'search_backfill_from', CAST(max(seq) AS TEXT) FROM inbox HAVING max(seq) IS NOT NULL;

-- What stays of a message that retention removed: its id, so that a late redelivery does not bring it back.
CREATE TABLE inbox_tombstone (
  client_message_id TEXT NOT NULL PRIMARY KEY,
  id TEXT NOT NULL,
  broker_message_id TEXT NOT NULL,
  history_id INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  read_at INTEGER,
  removed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

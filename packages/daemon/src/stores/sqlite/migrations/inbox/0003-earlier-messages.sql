-- Messages whose client id a later one has: once the broker has forgotten an id, it may accept another message under it.
-- Their place, id and number stay as they were; which is the later one is said by history_id.
CREATE TABLE inbox_earlier (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  client_message_id TEXT NOT NULL,
  broker_message_id TEXT NOT NULL,
  history_id INTEGER NOT NULL,
  topic TEXT,
  sender_pubkey TEXT NOT NULL,
  sender_name TEXT,
  priority TEXT NOT NULL,
  meta TEXT NOT NULL,
  reply_to_id TEXT,
  accepted_at INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  read_at INTEGER,
  unreadable INTEGER NOT NULL,
  restored INTEGER NOT NULL,
  body BLOB NOT NULL,
  UNIQUE (client_message_id, broker_message_id)
) STRICT;

-- Everything that was received and is still here.
CREATE VIEW inbox_message AS
  SELECT seq, id, client_message_id, broker_message_id, history_id, topic, sender_pubkey, sender_name, priority, meta,
    reply_to_id, accepted_at, received_at, read_at, unreadable, restored, body, 0 AS is_earlier FROM inbox
  UNION ALL
  SELECT seq, id, client_message_id, broker_message_id, history_id, topic, sender_pubkey, sender_name, priority, meta,
    reply_to_id, accepted_at, received_at, read_at, unreadable, restored, body, 1 AS is_earlier FROM inbox_earlier;

-- One for each message, not for each client id.
CREATE TABLE inbox_tombstone_of_message (
  client_message_id TEXT NOT NULL,
  broker_message_id TEXT NOT NULL,
  id TEXT NOT NULL,
  history_id INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  read_at INTEGER,
  removed_at INTEGER NOT NULL,
  PRIMARY KEY (client_message_id, broker_message_id)
) STRICT, WITHOUT ROWID;

INSERT INTO inbox_tombstone_of_message
    (client_message_id, broker_message_id, id, history_id, received_at, read_at, removed_at)
  SELECT client_message_id, broker_message_id, id, history_id, received_at, read_at, removed_at FROM inbox_tombstone;

DROP TABLE inbox_tombstone;
ALTER TABLE inbox_tombstone_of_message RENAME TO inbox_tombstone;

-- Pages of what is not marked as read, without walking through what is. A row enters at the end and leaves when it is marked.
CREATE INDEX inbox_unread ON inbox (id) WHERE read_at IS NULL;
CREATE INDEX inbox_earlier_unread ON inbox_earlier (id) WHERE read_at IS NULL;

-- How far each program has come that asks for what it has not been given yet. All three places are ids of the inbox.
CREATE TABLE inbox_reader (
  name TEXT NOT NULL PRIMARY KEY,
  -- What was unread before this id is older than the reader, and is never given to it by itself.
  starts_at TEXT NOT NULL,
  -- Everything up to here was given to it, as it has said itself.
  position TEXT NOT NULL,
  -- Everything up to here was offered to it, and may have been lost on the way.
  offered TEXT NOT NULL,
  used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX inbox_reader_used ON inbox_reader (used_at);

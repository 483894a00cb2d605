-- Lists in checks are written with OR: SQLite builds a table for every IN, at every insert.
-- Accepted sends. `payload`, both fingerprints and `enqueued_at` never change; `payload` stands last, so that reading
-- the small columns never walks through a large body. Rows arrive in the order of their ids; the client's id, which
-- may be random, is in one index only.
CREATE TABLE outbox (
  id TEXT NOT NULL PRIMARY KEY,
  client_message_id TEXT NOT NULL UNIQUE,
  request_fingerprint BLOB NOT NULL CHECK (length(request_fingerprint) = 32),
  wire_fingerprint BLOB NOT NULL CHECK (length(wire_fingerprint) = 32),
  to_address TEXT NOT NULL,
  destination_kind TEXT NOT NULL CHECK (destination_kind = 'topic' OR destination_kind = 'dm' OR destination_kind = 'queue'),
  destination_ref TEXT NOT NULL,
  priority TEXT NOT NULL CHECK (priority = 'now' OR priority = 'next' OR priority = 'low'),
  -- RFC 8785 text; '' where there is none.
  meta TEXT NOT NULL,
  reply_to_id TEXT,
  envelope_version TEXT NOT NULL CHECK (envelope_version = '1' OR envelope_version = '2'),
  enqueued_at INTEGER NOT NULL,
  -- Tries that ended, and those among them that no refusal answered.
  attempts INTEGER NOT NULL DEFAULT 0,
  unanswered INTEGER NOT NULL DEFAULT 0,
  -- 1: the broker has said that no try of this row can commit any more.
  fenced INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status = 'pending' OR status = 'inflight' OR status = 'done' OR status = 'dead' OR status = 'aborted'),
  last_error TEXT,
  delivered_at INTEGER,
  broker_message_id TEXT,
  history_id INTEGER,
  aborted_at INTEGER,
  aborted_by TEXT,
  superseded_by TEXT,
  payload BLOB NOT NULL
) STRICT;

-- Partial, so that a row that is done costs no index but the two that name it.
CREATE INDEX outbox_pending ON outbox (next_attempt_at) WHERE status = 'pending';
CREATE INDEX outbox_inflight ON outbox (id) WHERE status = 'inflight';
CREATE INDEX outbox_dead ON outbox (id) WHERE status = 'dead';
CREATE INDEX outbox_aborted ON outbox (id) WHERE status = 'aborted';
CREATE INDEX outbox_superseded ON outbox (superseded_by) WHERE superseded_by IS NOT NULL;

-- What stays of a done row when its payload is dropped. It answers like the row did: nothing frees an id.
CREATE TABLE outbox_tombstone (
  client_message_id TEXT NOT NULL PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  request_fingerprint BLOB NOT NULL,
  wire_fingerprint BLOB NOT NULL,
  to_address TEXT NOT NULL,
  destination_kind TEXT NOT NULL,
  destination_ref TEXT NOT NULL,
  priority TEXT NOT NULL,
  meta TEXT NOT NULL,
  reply_to_id TEXT,
  envelope_version TEXT NOT NULL,
  enqueued_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  delivered_at INTEGER NOT NULL,
  broker_message_id TEXT NOT NULL,
  history_id INTEGER NOT NULL,
  pruned_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The members of the mesh as the broker listed them last, so that names resolve while it is away.
CREATE TABLE member (
  pubkey TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Small facts that outlive the process, one JSON value each.
CREATE TABLE daemon_state (
  key TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

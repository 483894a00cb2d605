-- A third envelope version. A check cannot be changed in place, so the table is written anew; everything else is as it was,
-- with rows in their order, and `payload` stands last again.
CREATE TABLE outbox_next (
  id TEXT NOT NULL PRIMARY KEY,
  client_message_id TEXT NOT NULL UNIQUE,
  request_fingerprint BLOB NOT NULL CHECK (length(request_fingerprint) = 32),
  wire_fingerprint BLOB NOT NULL CHECK (length(wire_fingerprint) = 32),
  to_address TEXT NOT NULL,
  destination_kind TEXT NOT NULL CHECK (destination_kind = 'topic' OR destination_kind = 'dm' OR destination_kind = 'queue'),
  destination_ref TEXT NOT NULL,
  priority TEXT NOT NULL CHECK (priority = 'now' OR priority = 'next' OR priority = 'low'),
  -- RFC 8785 text; '' where there is none. In version '3' the wire has none: it is inside the payload too.
  meta TEXT NOT NULL,
  reply_to_id TEXT,
  envelope_version TEXT NOT NULL CHECK (envelope_version = '1' OR envelope_version = '2' OR envelope_version = '3'),
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
  -- 1: the operator accepted, when this row was requeued or came from a requeue, that both rows might reach the broker.
  accept_duplicate INTEGER NOT NULL DEFAULT 0,
  payload BLOB NOT NULL
) STRICT;

INSERT INTO outbox_next (rowid, id, client_message_id, request_fingerprint, wire_fingerprint, to_address, destination_kind,
    destination_ref, priority, meta, reply_to_id, envelope_version, enqueued_at, attempts, unanswered, fenced,
    next_attempt_at, status, last_error, delivered_at, broker_message_id, history_id, aborted_at, aborted_by,
    superseded_by, accept_duplicate, payload)
  SELECT rowid, id, client_message_id, request_fingerprint, wire_fingerprint, to_address, destination_kind,
    destination_ref, priority, meta, reply_to_id, envelope_version, enqueued_at, attempts, unanswered, fenced,
    next_attempt_at, status, last_error, delivered_at, broker_message_id, history_id, aborted_at, aborted_by,
    superseded_by, accept_duplicate, payload
  FROM outbox ORDER BY rowid;

DROP TABLE outbox;
ALTER TABLE outbox_next RENAME TO outbox;

CREATE INDEX outbox_pending ON outbox (next_attempt_at) WHERE status = 'pending';
CREATE INDEX outbox_inflight ON outbox (id) WHERE status = 'inflight';
CREATE INDEX outbox_dead ON outbox (id) WHERE status = 'dead';
CREATE INDEX outbox_aborted ON outbox (id) WHERE status = 'aborted';
CREATE INDEX outbox_superseded ON outbox (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX outbox_pending_by_id ON outbox (id, enqueued_at) WHERE status = 'pending';
CREATE INDEX outbox_done ON outbox (id) WHERE status = 'done';

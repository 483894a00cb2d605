-- 1: the operator accepted, when this row was requeued or came from a requeue, that both rows might reach the broker.
-- SQLite keeps 0 and 1 in a record's header, so that reading them walks through no payload, wherever the column stands.
ALTER TABLE outbox ADD COLUMN accept_duplicate INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox_tombstone ADD COLUMN accept_duplicate INTEGER NOT NULL DEFAULT 0;

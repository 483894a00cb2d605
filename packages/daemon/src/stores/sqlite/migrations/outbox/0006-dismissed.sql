-- A dead row that somebody has looked at and let go: it stays, and raises no alarm any more. NULL is kept in a record's
-- header, so that reading these of a row that was never dismissed walks through no payload, though they stand behind it.
ALTER TABLE outbox ADD COLUMN dismissed_at INTEGER;
ALTER TABLE outbox ADD COLUMN dismissed_by TEXT;
ALTER TABLE outbox ADD COLUMN dismissed_why TEXT;
-- How many dead rows still ask for attention, however many were dismissed.
CREATE INDEX outbox_dead_open ON outbox (id) WHERE status = 'dead' AND dismissed_at IS NULL;

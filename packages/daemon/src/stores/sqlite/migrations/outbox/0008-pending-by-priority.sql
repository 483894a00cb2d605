-- What waits leaves in the order of its priority, and in that by when it is due. It takes the place of an index on the due time
-- alone, so that a row costs as many as before; the next due time of all is the first of three.
DROP INDEX outbox_pending;
CREATE INDEX outbox_pending ON outbox (priority, next_attempt_at) WHERE status = 'pending';

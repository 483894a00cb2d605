-- Pages of pending rows, and the oldest among them, without walking through what is done or reading a row for its time.
CREATE INDEX outbox_pending_by_id ON outbox (id, enqueued_at) WHERE status = 'pending';

-- A webhook is asked for what is due at its turn, which is never later than that; where more is due than was taken, the
-- turn is when it was asked last. So brokers find whom to ask without reading through anybody's backlog. Failing means
-- that the last try did.
ALTER TABLE webhook ADD COLUMN turn_at INTEGER;
ALTER TABLE webhook ADD COLUMN failing INTEGER NOT NULL DEFAULT 0 CHECK (failing = 0 OR failing = 1);
UPDATE webhook SET turn_at = (SELECT min(d.due_at) FROM webhook_delivery d
  WHERE d.mesh_id = webhook.mesh_id AND d.incarnation = webhook.incarnation AND d.state = 'pending');
CREATE INDEX webhook_turn ON webhook (failing, turn_at) WHERE deleted_at IS NULL;
DROP INDEX webhook_delivery_due;
CREATE INDEX webhook_delivery_due ON webhook_delivery (mesh_id, incarnation, due_at, history_id) WHERE state = 'pending';

-- Until then a broker tries it: what is due later without one only waits.
ALTER TABLE webhook_delivery ADD COLUMN held_until INTEGER;

-- Every state of a webhook's deliveries is listed by an index of its own, however much there is in others.
CREATE INDEX webhook_delivery_delivered ON webhook_delivery (mesh_id, incarnation, history_id) WHERE state = 'delivered';
CREATE INDEX webhook_delivery_expired ON webhook_delivery (mesh_id, incarnation, history_id) WHERE state = 'expired';

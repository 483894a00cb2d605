-- A webhook is asked for what is due at its turn, which is never later than that; where more is due than was taken, the
-- turn is when it was asked last. So brokers find whom to ask without reading through anybody's backlog. Failing means
-- that the last try did. Who brings a turn forward locks the webhook before its deliveries.
ALTER TABLE mesh.webhook ADD COLUMN turn_at timestamptz, ADD COLUMN failing boolean NOT NULL DEFAULT false;
UPDATE mesh.webhook w SET turn_at = (SELECT min(d.due_at) FROM mesh.webhook_delivery d
  WHERE d.mesh_id = w.mesh_id AND d.incarnation = w.incarnation AND d.state = 'pending');
CREATE INDEX webhook_turn ON mesh.webhook (failing, turn_at) WHERE deleted_at IS NULL;
DROP INDEX mesh.webhook_delivery_due;
CREATE INDEX webhook_delivery_due ON mesh.webhook_delivery (mesh_id, incarnation, due_at, history_id)
  WHERE state = 'pending';

-- Until then a broker tries it: what is due later without one only waits.
ALTER TABLE mesh.webhook_delivery ADD COLUMN held_until timestamptz;

-- Every state of a webhook's deliveries is listed by an index of its own, however much there is in others.
CREATE INDEX webhook_delivery_delivered ON mesh.webhook_delivery (mesh_id, incarnation, history_id)
  WHERE state = 'delivered';
CREATE INDEX webhook_delivery_expired ON mesh.webhook_delivery (mesh_id, incarnation, history_id)
  WHERE state = 'expired';

-- Every state of a webhook's deliveries is listed by an index of its own, however much there is in others.
CREATE INDEX webhook_delivery_delivered ON mesh.webhook_delivery (mesh_id, incarnation, history_id)
  WHERE state = 'delivered';
CREATE INDEX webhook_delivery_expired ON mesh.webhook_delivery (mesh_id, incarnation, history_id)
  WHERE state = 'expired';

-- Where topic messages are sent to. The incarnation tells a webhook from an earlier one of the same id, so that what is
-- left of a deleted one can go step by step. The secret is in clear, because signing needs it.
CREATE TABLE webhook (
  mesh_id TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  id TEXT NOT NULL,
  url TEXT NOT NULL,
  topics TEXT,
  secret TEXT NOT NULL,
  fingerprint BLOB NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  written_up_to INTEGER NOT NULL,
  stepped_at INTEGER NOT NULL,
  deleted_at INTEGER,
  PRIMARY KEY (mesh_id, incarnation)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX webhook_live ON webhook (mesh_id, id) WHERE deleted_at IS NULL;
CREATE INDEX webhook_deleted ON webhook (deleted_at) WHERE deleted_at IS NOT NULL;

-- One row per message and webhook, written from committed history with the webhook's written_up_to. States and the steps
-- between them are in core/webhook-delivery.ts; a delivery in a broker's hands is pending with due_at in the future.
CREATE TABLE webhook_delivery (
  mesh_id TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  history_id INTEGER NOT NULL,
  broker_message_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state = 'pending' OR state = 'delivered' OR state = 'parked' OR state = 'expired'),
  attempts INTEGER NOT NULL,
  due_at INTEGER,
  last_attempt_at INTEGER,
  last_status INTEGER,
  last_error TEXT,
  settled_at INTEGER,
  PRIMARY KEY (mesh_id, incarnation, history_id),
  CHECK ((state = 'pending') = (due_at IS NOT NULL)),
  CHECK ((state = 'pending') = (settled_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_delivery_due ON webhook_delivery (due_at) WHERE state = 'pending';
CREATE INDEX webhook_delivery_pending ON webhook_delivery (mesh_id, incarnation, history_id) WHERE state = 'pending';
CREATE INDEX webhook_delivery_parked ON webhook_delivery (mesh_id, incarnation, history_id) WHERE state = 'parked';
CREATE INDEX webhook_delivery_settled ON webhook_delivery (state, settled_at);

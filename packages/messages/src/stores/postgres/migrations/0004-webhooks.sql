-- Where topic messages are sent to. The incarnation tells a webhook from an earlier one of the same id, so that what is
-- left of a deleted one can go step by step. The secret is in clear, because signing needs it.
CREATE TABLE mesh.webhook (
  mesh_id uuid NOT NULL,
  incarnation text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  url text NOT NULL,
  topics text[],
  secret text NOT NULL,
  fingerprint bytea NOT NULL,
  created_by text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL,
  written_up_to bigint NOT NULL,
  stepped_at timestamptz NOT NULL,
  deleted_at timestamptz,
  PRIMARY KEY (mesh_id, incarnation)
);
CREATE UNIQUE INDEX webhook_live ON mesh.webhook (mesh_id, id) WHERE deleted_at IS NULL;
CREATE INDEX webhook_deleted ON mesh.webhook (deleted_at) WHERE deleted_at IS NOT NULL;

-- One row per message and webhook, written from committed history with the webhook's written_up_to. States and the steps
-- between them are in core/webhook-delivery.ts; a delivery in a broker's hands is pending with due_at in the future.
CREATE TABLE mesh.webhook_delivery (
  mesh_id uuid NOT NULL,
  incarnation text COLLATE "C" NOT NULL,
  history_id bigint NOT NULL,
  broker_message_id uuid NOT NULL,
  state text NOT NULL CHECK (state IN ('pending', 'delivered', 'parked', 'expired')),
  attempts integer NOT NULL,
  due_at timestamptz,
  last_attempt_at timestamptz,
  last_status integer,
  last_error text,
  settled_at timestamptz,
  PRIMARY KEY (mesh_id, incarnation, history_id),
  CHECK ((state = 'pending') = (due_at IS NOT NULL)),
  CHECK ((state = 'pending') = (settled_at IS NULL))
);
CREATE INDEX webhook_delivery_due ON mesh.webhook_delivery (due_at) WHERE state = 'pending';
CREATE INDEX webhook_delivery_pending ON mesh.webhook_delivery (mesh_id, incarnation, history_id)
  WHERE state = 'pending';
CREATE INDEX webhook_delivery_parked ON mesh.webhook_delivery (mesh_id, incarnation, history_id)
  WHERE state = 'parked';
CREATE INDEX webhook_delivery_settled ON mesh.webhook_delivery (state, settled_at);

-- Text that is compared or listed in order has the order of its bytes, as on SQLite and in every process. No foreign
-- key to the mesh on tables that accepts fill: each row's check would lock the mesh's row anew.

-- The claim of a send. A committed row exists exactly when the accept transaction committed.
-- client_message_id is chosen by callers and may be random, so it is a key here and nowhere else.
-- A claim is written before the mesh's lock is taken, when its history_id is not known: that is in its history row.
CREATE TABLE mesh.client_message_dedupe (
  mesh_id uuid NOT NULL,
  client_message_id text COLLATE "C" NOT NULL,
  broker_message_id uuid NOT NULL,
  request_fingerprint bytea NOT NULL CHECK (length(request_fingerprint) = 32),
  destination_kind text NOT NULL CHECK (destination_kind IN ('topic', 'dm', 'queue')),
  destination_ref text COLLATE "C" NOT NULL,
  sender_pubkey text COLLATE "C" NOT NULL,
  first_seen_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  history_available boolean NOT NULL DEFAULT true,
  PRIMARY KEY (mesh_id, client_message_id)
);
-- Rows are appended as time passes, so that a range per block finds the expired ones and costs an insert nothing.
CREATE INDEX client_message_dedupe_expires_idx ON mesh.client_message_dedupe USING brin (expires_at)
  WITH (autosummarize = on) WHERE expires_at IS NOT NULL;

-- An id that its sender has given up: whatever of it is still on its way can never commit.
CREATE TABLE mesh.client_message_fence (
  mesh_id uuid NOT NULL,
  sender_pubkey text COLLATE "C" NOT NULL,
  client_message_id text COLLATE "C" NOT NULL,
  request_fingerprint bytea NOT NULL,
  fenced_at timestamptz NOT NULL,
  expires_at timestamptz,
  PRIMARY KEY (mesh_id, sender_pubkey, client_message_id)
);

CREATE TABLE mesh.topic_message (
  mesh_id uuid NOT NULL,
  id uuid NOT NULL,
  client_message_id text COLLATE "C" NOT NULL,
  topic text COLLATE "C" NOT NULL,
  sender_pubkey text COLLATE "C" NOT NULL,
  envelope_version text NOT NULL,
  body bytea NOT NULL,
  meta text NOT NULL,
  priority text NOT NULL,
  reply_to_id text,
  created_at timestamptz NOT NULL,
  history_id bigint NOT NULL,
  PRIMARY KEY (mesh_id, id)
);

-- Direct messages and messages to queues.
CREATE TABLE mesh.message_queue (
  mesh_id uuid NOT NULL,
  id uuid NOT NULL,
  client_message_id text COLLATE "C" NOT NULL,
  destination_kind text NOT NULL CHECK (destination_kind IN ('dm', 'queue')),
  destination_ref text COLLATE "C" NOT NULL,
  sender_pubkey text COLLATE "C" NOT NULL,
  envelope_version text NOT NULL,
  body bytea NOT NULL,
  meta text NOT NULL,
  priority text NOT NULL,
  reply_to_id text,
  created_at timestamptz NOT NULL,
  history_id bigint NOT NULL,
  PRIMARY KEY (mesh_id, id)
);

-- One number per mesh that grows in commit order, because it is taken under the mesh's lock.
CREATE TABLE mesh.mesh_history_counter (
  mesh_id uuid NOT NULL PRIMARY KEY,
  last_history_id bigint NOT NULL
) WITH (fillfactor = 10);

CREATE TABLE mesh.message_history (
  mesh_id uuid NOT NULL,
  history_id bigint NOT NULL,
  broker_message_id uuid NOT NULL,
  client_message_id text COLLATE "C" NOT NULL,
  destination_kind text NOT NULL,
  destination_ref text COLLATE "C" NOT NULL,
  sender_pubkey text COLLATE "C" NOT NULL,
  accepted_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, history_id)
);
-- Ids of messages grow with time, so that this index grows at its end.
CREATE UNIQUE INDEX message_history_message ON mesh.message_history (mesh_id, broker_message_id);

-- One row per recipient, appended in history order; the partial index finds what a recipient has not confirmed.
CREATE TABLE mesh.delivery_queue (
  mesh_id uuid NOT NULL,
  history_id bigint NOT NULL,
  recipient_pubkey text COLLATE "C" NOT NULL,
  broker_message_id uuid NOT NULL,
  settled_at timestamptz,
  outcome text CHECK (outcome IN ('delivered', 'expired')),
  PRIMARY KEY (mesh_id, history_id, recipient_pubkey),
  CHECK ((settled_at IS NULL) = (outcome IS NULL))
);
CREATE INDEX delivery_queue_unsettled ON mesh.delivery_queue (mesh_id, recipient_pubkey, history_id)
  WHERE settled_at IS NULL;

CREATE TABLE mesh.mention_index (
  mesh_id uuid NOT NULL,
  mentioned_pubkey text COLLATE "C" NOT NULL,
  history_id bigint NOT NULL,
  broker_message_id uuid NOT NULL,
  PRIMARY KEY (mesh_id, mentioned_pubkey, history_id)
);

CREATE TABLE mesh.topic (
  mesh_id uuid NOT NULL,
  name text COLLATE "C" NOT NULL,
  post_policy text NOT NULL CHECK (post_policy IN ('members', 'subscribers')),
  created_by text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, name)
);

CREATE TABLE mesh.topic_subscription (
  mesh_id uuid NOT NULL,
  topic text COLLATE "C" NOT NULL,
  member_pubkey text COLLATE "C" NOT NULL,
  subscribed_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, topic, member_pubkey)
);

CREATE TABLE mesh.queue (
  mesh_id uuid NOT NULL,
  id text COLLATE "C" NOT NULL,
  max_deliveries integer NOT NULL,
  created_by text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, id)
);

-- One row per message sent to a queue, appended in history order with the accept. Its states and the steps between
-- them are in core/queue-message.ts; a lease that ran out may still be written here as leased.
CREATE TABLE mesh.queue_message (
  mesh_id uuid NOT NULL,
  queue text COLLATE "C" NOT NULL,
  history_id bigint NOT NULL,
  broker_message_id uuid NOT NULL,
  state text NOT NULL CHECK (state IN ('ready', 'leased', 'parked', 'acked', 'expired')),
  deliveries integer NOT NULL,
  lease_holder text COLLATE "C",
  lease_token text COLLATE "C",
  lease_expires_at timestamptz,
  parked_at timestamptz,
  settled_at timestamptz,
  PRIMARY KEY (mesh_id, queue, history_id),
  CHECK ((state IN ('leased', 'acked')) = (lease_token IS NOT NULL)),
  CHECK ((lease_holder IS NULL) = (lease_token IS NULL)),
  CHECK ((state = 'leased') = (lease_expires_at IS NOT NULL)),
  CHECK ((state = 'parked') = (parked_at IS NOT NULL)),
  CHECK ((state IN ('acked', 'expired')) = (settled_at IS NOT NULL))
);
CREATE INDEX queue_message_ready ON mesh.queue_message (mesh_id, queue, history_id) WHERE state = 'ready';
CREATE INDEX queue_message_parked ON mesh.queue_message (mesh_id, queue, history_id) WHERE state = 'parked';
CREATE INDEX queue_message_expiry ON mesh.queue_message (mesh_id, queue, lease_expires_at) WHERE state = 'leased';
CREATE INDEX queue_message_held ON mesh.queue_message (mesh_id, lease_holder, lease_token, history_id)
  WHERE state = 'leased';

-- What a consumer asked for and the token it got, so that the same request gets the same answer. An answer without
-- messages leaves no row.
CREATE TABLE mesh.queue_lease (
  mesh_id uuid NOT NULL,
  queue text COLLATE "C" NOT NULL,
  holder_pubkey text COLLATE "C" NOT NULL,
  lease_request_id text COLLATE "C" NOT NULL,
  lease_token text COLLATE "C" NOT NULL,
  max_messages integer NOT NULL,
  lease_seconds integer NOT NULL,
  leased_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, queue, holder_pubkey, lease_request_id)
);

-- What a token settled, so that it stays settled for whoever asks again, however often the message moved on since.
CREATE TABLE mesh.queue_settlement (
  mesh_id uuid NOT NULL,
  queue text COLLATE "C" NOT NULL,
  lease_token text COLLATE "C" NOT NULL,
  broker_message_id uuid NOT NULL,
  holder_pubkey text COLLATE "C" NOT NULL,
  settlement text NOT NULL CHECK (settlement IN ('acked', 'nacked')),
  settled_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, queue, lease_token, broker_message_id)
);

-- Who is connected. A row counts until expires_at, whether or not it has been swept.
CREATE TABLE mesh.presence_lease (
  mesh_id uuid NOT NULL,
  member_pubkey text COLLATE "C" NOT NULL,
  connection_id text COLLATE "C" NOT NULL,
  connected_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, member_pubkey, connection_id)
);

CREATE TABLE mesh.member_profile (
  mesh_id uuid NOT NULL,
  member_pubkey text COLLATE "C" NOT NULL,
  summary text NOT NULL,
  status text NOT NULL,
  visible boolean NOT NULL,
  avatar text NOT NULL,
  title text NOT NULL,
  bio text NOT NULL,
  capabilities text[] NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, member_pubkey)
);

-- The words of messages in clear text, each marked with its mesh, so that a search touches that mesh's words only. The
-- text itself stays in the message tables.
CREATE TABLE mesh.message_search (
  mesh_id uuid NOT NULL,
  history_id bigint NOT NULL,
  words tsvector NOT NULL,
  PRIMARY KEY (mesh_id, history_id)
);
CREATE INDEX message_search_words ON mesh.message_search USING gin (words);

-- How far the index of each mesh is. Whoever indexes a mesh holds its row.
CREATE TABLE mesh.message_search_cursor (
  mesh_id uuid NOT NULL PRIMARY KEY,
  indexed_up_to bigint NOT NULL,
  stepped_at timestamptz NOT NULL
);

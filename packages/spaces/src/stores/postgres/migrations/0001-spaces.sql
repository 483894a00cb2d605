-- Text that is compared or listed in order has the order of its bytes, as on SQLite and in every process.
CREATE SCHEMA IF NOT EXISTS mesh;

-- A space's id is its name: it is never renamed, and every key below leads with mesh and space.
CREATE TABLE mesh.space (
  mesh_id uuid NOT NULL,
  space_id text COLLATE "C" NOT NULL,
  signed_writes text NOT NULL CHECK (signed_writes IN ('optional', 'required')),
  last_seq bigint NOT NULL,
  created_by text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, space_id)
);

-- epoch counts the opens; the token of any epoch but this one is good for nothing.
CREATE TABLE mesh.space_session (
  mesh_id uuid NOT NULL,
  space_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  member_pubkey text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL,
  token_hash bytea NOT NULL,
  last_local_seq bigint NOT NULL,
  used_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, space_id, session_id)
);

-- Which open gave which epoch. The token is made from the openId and the salt, so that only who knows the openId
-- can be told it again.
CREATE TABLE mesh.space_session_open (
  mesh_id uuid NOT NULL,
  space_id text COLLATE "C" NOT NULL,
  member_pubkey text COLLATE "C" NOT NULL,
  open_hash bytea NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL,
  salt bytea NOT NULL,
  resumed boolean NOT NULL,
  PRIMARY KEY (mesh_id, space_id, member_pubkey, open_hash)
);
CREATE INDEX space_session_open_session ON mesh.space_session_open (mesh_id, space_id, session_id);

-- The claim of (session, localSeq). seq is null exactly when it was rejected; result is what a retry is told.
CREATE TABLE mesh.space_verdict (
  mesh_id uuid NOT NULL,
  space_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  local_seq bigint NOT NULL,
  member_pubkey text COLLATE "C" NOT NULL,
  fingerprint bytea NOT NULL,
  branch text COLLATE "C" NOT NULL,
  seq bigint,
  result text NOT NULL,
  decided_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, space_id, session_id, local_seq)
);

-- The log: what was accepted, in the order of seq, as it was sent.
CREATE TABLE mesh.space_commit (
  mesh_id uuid NOT NULL,
  space_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  branch text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  local_seq bigint NOT NULL,
  member_pubkey text COLLATE "C" NOT NULL,
  original text NOT NULL,
  resolution text NOT NULL,
  invocation_ref text COLLATE "C",
  authorization_ref text COLLATE "C",
  committed_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, space_id, seq)
);

-- Append-only. The rows lie in the order of arrival, and the key finds an entity's history on one branch.
CREATE TABLE mesh.space_revision (
  mesh_id uuid NOT NULL,
  space_id text COLLATE "C" NOT NULL,
  branch text COLLATE "C" NOT NULL,
  entity_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  op_index integer NOT NULL,
  op text NOT NULL CHECK (op IN ('set', 'patch', 'delete')),
  body text,
  footprint text NOT NULL,
  PRIMARY KEY (mesh_id, space_id, branch, entity_id, seq, op_index),
  CHECK ((op = 'delete') = (body IS NULL))
);

-- The last write of an entity on each branch that wrote it. Lists what exists; documents come from the revisions.
CREATE TABLE mesh.space_head (
  mesh_id uuid NOT NULL,
  space_id text COLLATE "C" NOT NULL,
  branch text COLLATE "C" NOT NULL,
  entity_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  deleted boolean NOT NULL,
  PRIMARY KEY (mesh_id, space_id, branch, entity_id)
);

-- The document after the commit of that seq. Only shortens replay: every row here can be made again.
CREATE TABLE mesh.space_snapshot (
  mesh_id uuid NOT NULL,
  space_id text COLLATE "C" NOT NULL,
  branch text COLLATE "C" NOT NULL,
  entity_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  document text NOT NULL,
  PRIMARY KEY (mesh_id, space_id, branch, entity_id, seq)
);

-- lineage is the branch's whole ancestry with the seq up to which each ancestor shows through; it never changes.
CREATE TABLE mesh.space_branch (
  mesh_id uuid NOT NULL,
  space_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  lineage text NOT NULL,
  created_seq bigint NOT NULL,
  created_at timestamptz NOT NULL,
  deleted_seq bigint,
  PRIMARY KEY (mesh_id, space_id, name)
);

-- Which merges two branches have had, in either direction; the names stand in the order of their bytes.
CREATE TABLE mesh.space_merge (
  mesh_id uuid NOT NULL,
  space_id text COLLATE "C" NOT NULL,
  first_branch text COLLATE "C" NOT NULL,
  second_branch text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  source_branch text COLLATE "C" NOT NULL,
  source_seq bigint NOT NULL,
  PRIMARY KEY (mesh_id, space_id, first_branch, second_branch, seq)
);

-- What members signed, by the hash of its content.
CREATE TABLE mesh.space_invocation (
  mesh_id uuid NOT NULL,
  space_id text COLLATE "C" NOT NULL,
  hash text COLLATE "C" NOT NULL,
  content text NOT NULL,
  PRIMARY KEY (mesh_id, space_id, hash)
);

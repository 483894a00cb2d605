-- Lists in checks are written with OR: SQLite builds a table for every IN, at every insert.
-- A space's id is its name: it is never renamed, and every key below leads with mesh and space.
CREATE TABLE space (
  mesh_id TEXT NOT NULL,
  space_id TEXT NOT NULL,
  signed_writes TEXT NOT NULL CHECK (signed_writes = 'optional' OR signed_writes = 'required'),
  last_seq INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, space_id)
) STRICT, WITHOUT ROWID;

-- epoch counts the opens; the token of any epoch but this one is good for nothing.
CREATE TABLE space_session (
  mesh_id TEXT NOT NULL,
  space_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  member_pubkey TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  token_hash BLOB NOT NULL,
  last_local_seq INTEGER NOT NULL,
  used_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, space_id, session_id)
) STRICT, WITHOUT ROWID;

-- Which open gave which epoch. The token is made from the openId and the salt, so that only who knows the openId
-- can be told it again.
CREATE TABLE space_session_open (
  mesh_id TEXT NOT NULL,
  space_id TEXT NOT NULL,
  member_pubkey TEXT NOT NULL,
  open_hash BLOB NOT NULL,
  session_id TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  salt BLOB NOT NULL,
  resumed INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, space_id, member_pubkey, open_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX space_session_open_session ON space_session_open (mesh_id, space_id, session_id);

-- The claim of (session, localSeq). seq is null exactly when it was rejected; result is what a retry is told.
CREATE TABLE space_verdict (
  mesh_id TEXT NOT NULL,
  space_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  local_seq INTEGER NOT NULL,
  member_pubkey TEXT NOT NULL,
  fingerprint BLOB NOT NULL,
  branch TEXT NOT NULL,
  seq INTEGER,
  result TEXT NOT NULL,
  decided_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, space_id, session_id, local_seq)
) STRICT, WITHOUT ROWID;

-- The log: what was accepted, in the order of seq, as it was sent.
CREATE TABLE space_commit (
  mesh_id TEXT NOT NULL,
  space_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  branch TEXT NOT NULL,
  session_id TEXT NOT NULL,
  local_seq INTEGER NOT NULL,
  member_pubkey TEXT NOT NULL,
  original TEXT NOT NULL,
  resolution TEXT NOT NULL,
  invocation_ref TEXT,
  authorization_ref TEXT,
  committed_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, space_id, seq)
) STRICT;

-- Append-only. The rows lie in the order of arrival, and the key finds an entity's history on one branch.
CREATE TABLE space_revision (
  mesh_id TEXT NOT NULL,
  space_id TEXT NOT NULL,
  branch TEXT NOT NULL,
  entity_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  op_index INTEGER NOT NULL,
  op TEXT NOT NULL CHECK (op = 'set' OR op = 'patch' OR op = 'delete'),
  body TEXT,
  footprint TEXT NOT NULL,
  PRIMARY KEY (mesh_id, space_id, branch, entity_id, seq, op_index),
  CHECK ((op = 'delete') = (body IS NULL))
) STRICT;

-- The last write of an entity on each branch that wrote it. Lists what exists; documents come from the revisions.
CREATE TABLE space_head (
  mesh_id TEXT NOT NULL,
  space_id TEXT NOT NULL,
  branch TEXT NOT NULL,
  entity_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  deleted INTEGER NOT NULL CHECK (deleted = 0 OR deleted = 1),
  PRIMARY KEY (mesh_id, space_id, branch, entity_id)
) STRICT, WITHOUT ROWID;

-- The document after the commit of that seq. Only shortens replay: every row here can be made again.
CREATE TABLE space_snapshot (
  mesh_id TEXT NOT NULL,
  space_id TEXT NOT NULL,
  branch TEXT NOT NULL,
  entity_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  document TEXT NOT NULL,
  PRIMARY KEY (mesh_id, space_id, branch, entity_id, seq)
) STRICT;

-- lineage is the branch's whole ancestry with the seq up to which each ancestor shows through; it never changes.
CREATE TABLE space_branch (
  mesh_id TEXT NOT NULL,
  space_id TEXT NOT NULL,
  name TEXT NOT NULL,
  lineage TEXT NOT NULL,
  created_seq INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  deleted_seq INTEGER,
  PRIMARY KEY (mesh_id, space_id, name)
) STRICT, WITHOUT ROWID;

-- Which merges two branches have had, in either direction; the names stand in the order of their bytes.
CREATE TABLE space_merge (
  mesh_id TEXT NOT NULL,
  space_id TEXT NOT NULL,
  first_branch TEXT NOT NULL,
  second_branch TEXT NOT NULL,
  seq INTEGER NOT NULL,
  source_branch TEXT NOT NULL,
  source_seq INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, space_id, first_branch, second_branch, seq)
) STRICT, WITHOUT ROWID;

-- What members signed, by the hash of its content.
CREATE TABLE space_invocation (
  mesh_id TEXT NOT NULL,
  space_id TEXT NOT NULL,
  hash TEXT NOT NULL,
  content TEXT NOT NULL,
  PRIMARY KEY (mesh_id, space_id, hash)
) STRICT, WITHOUT ROWID;

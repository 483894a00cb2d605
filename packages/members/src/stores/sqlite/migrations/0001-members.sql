-- Lists in checks are written with OR: SQLite builds a table for every IN, at every insert.
-- The directory of meshes. The only table, with the migration ledger, that is not led by mesh_id.
CREATE TABLE mesh (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL
) STRICT;

-- A member is a key. It is never deleted: a revoked key stays known, so that it can not come back as somebody new.
CREATE TABLE member (
  mesh_id TEXT NOT NULL REFERENCES mesh(id),
  pubkey TEXT NOT NULL,
  name TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role = 'owner' OR role = 'member'),
  joined_at INTEGER NOT NULL,
  revoked_at INTEGER,
  PRIMARY KEY (mesh_id, pubkey)
) STRICT, WITHOUT ROWID;

CREATE TABLE invite (
  mesh_id TEXT NOT NULL REFERENCES mesh(id),
  secret_hash BLOB NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  used_by TEXT,
  used_at INTEGER,
  PRIMARY KEY (mesh_id, secret_hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE member_token (
  mesh_id TEXT NOT NULL REFERENCES mesh(id),
  id TEXT NOT NULL,
  token_hash BLOB NOT NULL,
  pubkey TEXT NOT NULL,
  label TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER,
  PRIMARY KEY (mesh_id, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX member_token_hash ON member_token (mesh_id, token_hash);

-- What owners have set for a mesh. A key that is not here has its default; which keys there are is the protocol's to know.
CREATE TABLE mesh_setting (
  mesh_id TEXT NOT NULL REFERENCES mesh(id),
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  set_by TEXT NOT NULL,
  set_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, key)
) STRICT, WITHOUT ROWID;

-- Names are unique without regard to case, former members' too, from now on. The index is not unique: a store from before
-- may hold a name twice, and goes on.
CREATE INDEX member_name ON member (mesh_id, lower(name));

-- The name that the inviter has fixed.
ALTER TABLE invite ADD COLUMN member_name TEXT;

-- What is counted against the mesh's limits.
CREATE INDEX invite_open ON invite (mesh_id, expires_at) WHERE used_by IS NULL AND revoked_at IS NULL;
CREATE INDEX member_token_live ON member_token (mesh_id) WHERE revoked_at IS NULL;

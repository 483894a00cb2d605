-- What owners have set for a mesh. A key that is not here has its default; which keys there are is the protocol's to know.
CREATE TABLE mesh.mesh_setting (
  mesh_id uuid NOT NULL REFERENCES mesh.mesh (id),
  key text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  set_by text COLLATE "C" NOT NULL,
  set_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, key)
);

-- Names are unique without regard to case, former members' too, from now on. The index is not unique: a store from before
-- may hold a name twice, and goes on.
CREATE INDEX member_name ON mesh.member (mesh_id, lower(name));

-- The name that the inviter has fixed.
ALTER TABLE mesh.invite ADD COLUMN member_name text COLLATE "C";

-- What is counted against the mesh's limits.
CREATE INDEX invite_open ON mesh.invite (mesh_id, expires_at) WHERE used_by IS NULL AND revoked_at IS NULL;
CREATE INDEX member_token_live ON mesh.member_token (mesh_id) WHERE revoked_at IS NULL;

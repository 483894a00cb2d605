-- Text that is compared or listed in order has the order of its bytes, as on SQLite and in every process.
CREATE SCHEMA IF NOT EXISTS mesh;

-- The directory of meshes. The only table, with the migration ledger, that is not led by mesh_id.
-- Its row is also the mesh's lock: who changes what an accept depends on, or takes a history id, holds it until COMMIT.
CREATE TABLE mesh.mesh (
  id uuid NOT NULL PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  created_at timestamptz NOT NULL
);

-- A member is a key. It is never deleted: a revoked key stays known, so that it can not come back as somebody new.
CREATE TABLE mesh.member (
  mesh_id uuid NOT NULL REFERENCES mesh.mesh (id),
  pubkey text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  role text NOT NULL CHECK (role IN ('owner', 'member')),
  joined_at timestamptz NOT NULL,
  revoked_at timestamptz,
  PRIMARY KEY (mesh_id, pubkey)
);

CREATE TABLE mesh.invite (
  mesh_id uuid NOT NULL REFERENCES mesh.mesh (id),
  secret_hash bytea NOT NULL,
  created_by text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  used_by text COLLATE "C",
  used_at timestamptz,
  PRIMARY KEY (mesh_id, secret_hash)
);

CREATE TABLE mesh.member_token (
  mesh_id uuid NOT NULL REFERENCES mesh.mesh (id),
  id text COLLATE "C" NOT NULL,
  token_hash bytea NOT NULL,
  pubkey text COLLATE "C" NOT NULL,
  label text NOT NULL,
  created_at timestamptz NOT NULL,
  revoked_at timestamptz,
  PRIMARY KEY (mesh_id, id)
);
CREATE UNIQUE INDEX member_token_hash ON mesh.member_token (mesh_id, token_hash);

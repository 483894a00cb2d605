-- The key by which members know their broker, shared by all brokers of this store. One row: 32 bytes, the ed25519 seed.
-- It is no mesh's, so that it has no mesh_id, and nobody but the brokers' own role may read it.
CREATE TABLE mesh.broker_key (
  only_one boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (only_one),
  seed bytea NOT NULL CHECK (length(seed) = 32),
  created_at timestamptz NOT NULL DEFAULT now()
);
REVOKE ALL ON mesh.broker_key FROM PUBLIC;

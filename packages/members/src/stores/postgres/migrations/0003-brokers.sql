-- The brokers that serve this store, each with a lease that it renews. Belongs to no mesh.
CREATE TABLE mesh.broker_lease (
  broker_id text COLLATE "C" PRIMARY KEY,
  public_url text,
  seen_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL
);

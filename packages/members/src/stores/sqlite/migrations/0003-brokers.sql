-- The brokers that serve this store, each with a lease that it renews. Belongs to no mesh.
CREATE TABLE broker_lease (
  broker_id TEXT PRIMARY KEY,
  public_url TEXT,
  seen_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

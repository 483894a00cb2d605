-- Which key the name of a member stood for when it was first written to here. Sends to the name go to this key and no other
-- until somebody on this host trusts another one.
CREATE TABLE peer_pin (
  name TEXT NOT NULL PRIMARY KEY,
  pubkey TEXT NOT NULL,
  pinned_at INTEGER NOT NULL,
  -- When the code of both keys was compared; NULL: never, for this key.
  verified_at INTEGER
) STRICT, WITHOUT ROWID;

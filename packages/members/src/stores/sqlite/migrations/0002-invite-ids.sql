-- An invite is named by an id: its secret is known to whoever it was given to, and to nobody else. The table is made anew,
-- since SQLite adds no column that must have a value of its own in every row.
CREATE TABLE invite_with_id (
  mesh_id TEXT NOT NULL REFERENCES mesh(id),
  secret_hash BLOB NOT NULL,
  id TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  used_by TEXT,
  used_at INTEGER,
  revoked_at INTEGER,
  PRIMARY KEY (mesh_id, secret_hash)
) STRICT, WITHOUT ROWID;
INSERT INTO invite_with_id (mesh_id, secret_hash, id, created_by, created_at, expires_at, used_by, used_at)
SELECT mesh_id, secret_hash,
  lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-8' ||
    substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))),
  created_by, created_at, expires_at, used_by, used_at
FROM invite;
DROP TABLE invite;
ALTER TABLE invite_with_id RENAME TO invite;
CREATE UNIQUE INDEX invite_id ON invite (mesh_id, id);

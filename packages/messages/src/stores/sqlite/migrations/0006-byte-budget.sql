-- What a mesh has written in a window, in bytes.
CREATE TABLE byte_budget_window (
  mesh_id TEXT NOT NULL,
  window_start INTEGER NOT NULL,
  ends_at INTEGER NOT NULL,
  used INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, window_start)
) STRICT, WITHOUT ROWID;

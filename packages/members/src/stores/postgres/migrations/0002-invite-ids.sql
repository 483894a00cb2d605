-- An invite is named by an id: its secret is known to whoever it was given to, and to nobody else. The default gives one to
-- every row that is there, and to those that a broker of an earlier version still adds.
ALTER TABLE mesh.invite
  ADD COLUMN id text COLLATE "C" NOT NULL DEFAULT gen_random_uuid()::text,
  ADD COLUMN revoked_at timestamptz;
CREATE UNIQUE INDEX invite_id ON mesh.invite (mesh_id, id);

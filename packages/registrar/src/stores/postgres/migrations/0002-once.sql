-- Every permission to run the effect of a `once` key, one row each, for ever. Its states and the steps between them are
-- in the protocol's once-state.ts; a lease that has ended is not written down.
CREATE TABLE mesh.once_claim (
  mesh_id uuid NOT NULL,
  key text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL CHECK (epoch >= 1),
  claim_id text COLLATE "C" NOT NULL,
  holder_pubkey text COLLATE "C" NOT NULL,
  inputs_fingerprint text COLLATE "C" NOT NULL CHECK (length(inputs_fingerprint) = 64),
  lease_seconds integer NOT NULL,
  claimed_at timestamptz NOT NULL,
  lease_until timestamptz NOT NULL,
  settled_how text CHECK (settled_how IN ('recorded', 'resolved_done', 'resolved_not_done')),
  settled_by text COLLATE "C",
  settled_at timestamptz,
  result text COLLATE "C",
  PRIMARY KEY (mesh_id, key, epoch),
  CHECK ((settled_how IS NULL) = (settled_by IS NULL) AND (settled_how IS NULL) = (settled_at IS NULL)),
  CHECK ((result IS NOT NULL) = (settled_how IS NOT NULL AND settled_how <> 'resolved_not_done'))
);
-- A claim never gets a second epoch, however often it is asked.
CREATE UNIQUE INDEX once_claim_attempt ON mesh.once_claim (mesh_id, key, holder_pubkey, claim_id);
-- Who runs a key is decided once per epoch, and how it ended once.
CREATE FUNCTION mesh.refuse_once_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'what once_claim holds stands' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER once_claim_stands BEFORE UPDATE ON mesh.once_claim FOR EACH ROW
WHEN (OLD.settled_how IS NOT NULL OR NEW.mesh_id <> OLD.mesh_id OR NEW.key <> OLD.key OR NEW.epoch <> OLD.epoch
  OR NEW.claim_id <> OLD.claim_id OR NEW.holder_pubkey <> OLD.holder_pubkey
  OR NEW.inputs_fingerprint <> OLD.inputs_fingerprint OR NEW.lease_until < OLD.lease_until)
EXECUTE FUNCTION mesh.refuse_once_change();

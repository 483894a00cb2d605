-- Every permission to run the effect of a `once` key, one row each, for ever. Its states and the steps between them are
-- in the protocol's once-state.ts; a lease that has ended is not written down.
CREATE TABLE once_claim (
  mesh_id TEXT NOT NULL,
  key TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  claim_id TEXT NOT NULL,
  holder_pubkey TEXT NOT NULL,
  inputs_fingerprint TEXT NOT NULL,
  lease_seconds INTEGER NOT NULL,
  claimed_at INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  settled_how TEXT,
  settled_by TEXT,
  settled_at INTEGER,
  result TEXT,
  PRIMARY KEY (mesh_id, key, epoch),
  CHECK (epoch >= 1),
  CHECK (length(inputs_fingerprint) = 64),
  CHECK (settled_how = 'recorded' OR settled_how = 'resolved_done' OR settled_how = 'resolved_not_done'),
  CHECK ((settled_how IS NULL) = (settled_by IS NULL) AND (settled_how IS NULL) = (settled_at IS NULL)),
  CHECK ((result IS NOT NULL) = (settled_how IS NOT NULL AND settled_how <> 'resolved_not_done'))
) STRICT, WITHOUT ROWID;
-- A claim never gets a second epoch, however often it is asked.
CREATE UNIQUE INDEX once_claim_attempt ON once_claim (mesh_id, key, holder_pubkey, claim_id);
-- Who runs a key is decided once per epoch, and how it ended once.
CREATE TRIGGER once_claim_stands BEFORE UPDATE ON once_claim
WHEN OLD.settled_how IS NOT NULL OR NEW.mesh_id <> OLD.mesh_id OR NEW.key <> OLD.key OR NEW.epoch <> OLD.epoch
  OR NEW.claim_id <> OLD.claim_id OR NEW.holder_pubkey <> OLD.holder_pubkey
  OR NEW.inputs_fingerprint <> OLD.inputs_fingerprint OR NEW.lease_until < OLD.lease_until
BEGIN SELECT RAISE(ABORT, 'what once_claim holds stands'); END;

-- Lists in checks are written with OR: SQLite builds a table for every IN, at every insert.
-- Everything here is named and examined when a broker starts: core/surface.ts lists what must be there. Tables have no
-- rowid, since INSERT OR REPLACE by rowid would remove a row without asking any key.

-- What an owner has signed. The nonce itself is shown once and kept nowhere. Only revoked_at may change, and only once.
CREATE TABLE registrar_approval (
  mesh_id TEXT NOT NULL,
  approval_id TEXT NOT NULL,
  owner_pubkey TEXT NOT NULL,
  operation TEXT NOT NULL,
  target TEXT NOT NULL,
  artifact_hash TEXT NOT NULL,
  run_id TEXT NOT NULL,
  purpose TEXT NOT NULL,
  logical_request_key TEXT,
  not_before INTEGER NOT NULL,
  not_after INTEGER NOT NULL,
  signature TEXT NOT NULL,
  nonce_hash BLOB NOT NULL,
  approved_at INTEGER NOT NULL,
  revoked_at INTEGER,
  PRIMARY KEY (mesh_id, approval_id),
  CONSTRAINT registrar_approval_purpose CHECK (purpose = 'register' OR purpose = 'compensate'),
  CONSTRAINT registrar_approval_key CHECK ((purpose = 'compensate') = (logical_request_key IS NOT NULL)),
  CONSTRAINT registrar_approval_window CHECK (not_before < not_after)
) STRICT, WITHOUT ROWID;

-- The single-use record: one row per logical request, per effect and per nonce, for ever. The attempt that won is
-- written down and keys nothing.
CREATE TABLE registrar_consume (
  mesh_id TEXT NOT NULL,
  logical_request_key TEXT NOT NULL,
  protocol_version TEXT NOT NULL,
  replay_key BLOB NOT NULL,
  effect_key BLOB NOT NULL,
  operation TEXT NOT NULL,
  target TEXT NOT NULL,
  artifact_hash TEXT NOT NULL,
  run_id TEXT NOT NULL,
  binding TEXT NOT NULL,
  approval_id TEXT NOT NULL,
  attempt_id TEXT NOT NULL,
  registration_id TEXT NOT NULL,
  member_pubkey TEXT NOT NULL,
  consumed_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, logical_request_key),
  CONSTRAINT registrar_consume_digests CHECK (length(replay_key) = 32 AND length(effect_key) = 32),
  CONSTRAINT registrar_consume_artifact CHECK (length(artifact_hash) = 64)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX registrar_consume_replay_key ON registrar_consume (mesh_id, replay_key);
CREATE UNIQUE INDEX registrar_consume_effect_key ON registrar_consume (mesh_id, effect_key);
CREATE UNIQUE INDEX registrar_consume_approval ON registrar_consume (mesh_id, approval_id);

-- The effect: inert until its verification is appended.
CREATE TABLE registrar_registration (
  mesh_id TEXT NOT NULL,
  logical_request_key TEXT NOT NULL,
  registration_id TEXT NOT NULL,
  operation TEXT NOT NULL,
  target TEXT NOT NULL,
  artifact_hash TEXT NOT NULL,
  run_id TEXT NOT NULL,
  binding TEXT NOT NULL,
  registered_by TEXT NOT NULL,
  registered_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, logical_request_key)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX registrar_registration_id ON registrar_registration (mesh_id, registration_id);

CREATE TABLE registrar_verification (
  mesh_id TEXT NOT NULL,
  logical_request_key TEXT NOT NULL,
  state TEXT NOT NULL,
  verifier TEXT NOT NULL,
  reasons TEXT NOT NULL,
  verified_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, logical_request_key),
  CONSTRAINT registrar_verification_state CHECK (state = 'registered_closed' OR state = 'verify_failed')
) STRICT, WITHOUT ROWID;

CREATE TABLE registrar_compensation (
  mesh_id TEXT NOT NULL,
  logical_request_key TEXT NOT NULL,
  approval_id TEXT NOT NULL,
  attempt_id TEXT NOT NULL,
  compensated_by TEXT NOT NULL,
  compensated_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, logical_request_key)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX registrar_compensation_approval ON registrar_compensation (mesh_id, approval_id);

-- Refusals, and how many of a window were not written one by one. Refers to nothing, since what it tells of was never
-- written.
CREATE TABLE registrar_audit (
  mesh_id TEXT NOT NULL,
  audit_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  member_pubkey TEXT NOT NULL,
  at INTEGER NOT NULL,
  code TEXT,
  conflict TEXT,
  logical_request_key TEXT,
  approval_id TEXT,
  attempt_id TEXT,
  suppressed INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, audit_id),
  CONSTRAINT registrar_audit_kind CHECK ((kind = 'refusal' AND code IS NOT NULL AND suppressed = 0) OR (kind = 'summary' AND suppressed > 0))
) STRICT, WITHOUT ROWID;

-- What a member's refusals have used of the audit in the current window.
CREATE TABLE registrar_audit_window (
  mesh_id TEXT NOT NULL,
  member_pubkey TEXT NOT NULL,
  window_start INTEGER NOT NULL,
  written INTEGER NOT NULL,
  suppressed INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, member_pubkey)
) STRICT, WITHOUT ROWID;

-- Retries of a consumed key, by attempt while there are few and as one number from then on. A ledger that counts; it
-- decides nothing, and no attempt is part of a key.
CREATE TABLE registrar_attempt (
  mesh_id TEXT NOT NULL,
  logical_request_key TEXT NOT NULL,
  seq INTEGER NOT NULL,
  attempt_id TEXT NOT NULL,
  member_pubkey TEXT NOT NULL,
  tries INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  PRIMARY KEY (mesh_id, logical_request_key, seq)
) STRICT, WITHOUT ROWID;

-- Append-only, kept by the database. The triggers on INSERT are for INSERT OR REPLACE, which removes the row that is in
-- its way without firing a trigger on DELETE.
CREATE TRIGGER registrar_approval_update BEFORE UPDATE ON registrar_approval
WHEN NEW.mesh_id IS NOT OLD.mesh_id OR NEW.approval_id IS NOT OLD.approval_id
  OR NEW.owner_pubkey IS NOT OLD.owner_pubkey OR NEW.operation IS NOT OLD.operation
  OR NEW.target IS NOT OLD.target OR NEW.artifact_hash IS NOT OLD.artifact_hash
  OR NEW.run_id IS NOT OLD.run_id OR NEW.purpose IS NOT OLD.purpose
  OR NEW.logical_request_key IS NOT OLD.logical_request_key OR NEW.not_before IS NOT OLD.not_before
  OR NEW.not_after IS NOT OLD.not_after OR NEW.signature IS NOT OLD.signature
  OR NEW.nonce_hash IS NOT OLD.nonce_hash OR NEW.approved_at IS NOT OLD.approved_at
  OR OLD.revoked_at IS NOT NULL OR NEW.revoked_at IS NULL
BEGIN SELECT RAISE(ABORT, 'an approval can only be revoked'); END;
CREATE TRIGGER registrar_approval_delete BEFORE DELETE ON registrar_approval
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;
CREATE TRIGGER registrar_approval_replace BEFORE INSERT ON registrar_approval
WHEN EXISTS (SELECT 1 FROM registrar_approval WHERE mesh_id = NEW.mesh_id AND approval_id = NEW.approval_id)
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;

CREATE TRIGGER registrar_consume_update BEFORE UPDATE ON registrar_consume
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;
CREATE TRIGGER registrar_consume_delete BEFORE DELETE ON registrar_consume
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;
CREATE TRIGGER registrar_consume_replace BEFORE INSERT ON registrar_consume
WHEN EXISTS (SELECT 1 FROM registrar_consume WHERE mesh_id = NEW.mesh_id AND logical_request_key = NEW.logical_request_key)
  OR EXISTS (SELECT 1 FROM registrar_consume WHERE mesh_id = NEW.mesh_id AND replay_key = NEW.replay_key)
  OR EXISTS (SELECT 1 FROM registrar_consume WHERE mesh_id = NEW.mesh_id AND effect_key = NEW.effect_key)
  OR EXISTS (SELECT 1 FROM registrar_consume WHERE mesh_id = NEW.mesh_id AND approval_id = NEW.approval_id)
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;

CREATE TRIGGER registrar_registration_update BEFORE UPDATE ON registrar_registration
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;
CREATE TRIGGER registrar_registration_delete BEFORE DELETE ON registrar_registration
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;
CREATE TRIGGER registrar_registration_replace BEFORE INSERT ON registrar_registration
WHEN EXISTS (SELECT 1 FROM registrar_registration WHERE mesh_id = NEW.mesh_id AND logical_request_key = NEW.logical_request_key)
  OR EXISTS (SELECT 1 FROM registrar_registration WHERE mesh_id = NEW.mesh_id AND registration_id = NEW.registration_id)
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;

CREATE TRIGGER registrar_verification_update BEFORE UPDATE ON registrar_verification
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;
CREATE TRIGGER registrar_verification_delete BEFORE DELETE ON registrar_verification
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;
CREATE TRIGGER registrar_verification_replace BEFORE INSERT ON registrar_verification
WHEN EXISTS (SELECT 1 FROM registrar_verification WHERE mesh_id = NEW.mesh_id AND logical_request_key = NEW.logical_request_key)
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;

CREATE TRIGGER registrar_compensation_update BEFORE UPDATE ON registrar_compensation
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;
CREATE TRIGGER registrar_compensation_delete BEFORE DELETE ON registrar_compensation
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;
CREATE TRIGGER registrar_compensation_replace BEFORE INSERT ON registrar_compensation
WHEN EXISTS (SELECT 1 FROM registrar_compensation WHERE mesh_id = NEW.mesh_id AND logical_request_key = NEW.logical_request_key)
  OR EXISTS (SELECT 1 FROM registrar_compensation WHERE mesh_id = NEW.mesh_id AND approval_id = NEW.approval_id)
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;

CREATE TRIGGER registrar_audit_update BEFORE UPDATE ON registrar_audit
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;
CREATE TRIGGER registrar_audit_delete BEFORE DELETE ON registrar_audit
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;
CREATE TRIGGER registrar_audit_replace BEFORE INSERT ON registrar_audit
WHEN EXISTS (SELECT 1 FROM registrar_audit WHERE mesh_id = NEW.mesh_id AND audit_id = NEW.audit_id)
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END;

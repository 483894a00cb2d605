-- Everything here is named and examined when a broker starts: core/surface.ts lists what must be there.

-- What an owner has signed. The nonce itself is shown once and kept nowhere. Only revoked_at may change, and only once.
CREATE TABLE mesh.registrar_approval (
  mesh_id uuid NOT NULL,
  approval_id text COLLATE "C" NOT NULL,
  owner_pubkey text COLLATE "C" NOT NULL,
  operation text COLLATE "C" NOT NULL,
  target text COLLATE "C" NOT NULL,
  artifact_hash text COLLATE "C" NOT NULL,
  run_id text COLLATE "C" NOT NULL,
  purpose text NOT NULL,
  logical_request_key text COLLATE "C",
  not_before bigint NOT NULL,
  not_after bigint NOT NULL,
  signature text NOT NULL,
  nonce_hash bytea NOT NULL,
  approved_at timestamptz NOT NULL,
  revoked_at timestamptz,
  PRIMARY KEY (mesh_id, approval_id),
  CONSTRAINT registrar_approval_purpose CHECK (purpose IN ('register', 'compensate')),
  CONSTRAINT registrar_approval_key CHECK ((purpose = 'compensate') = (logical_request_key IS NOT NULL)),
  CONSTRAINT registrar_approval_window CHECK (not_before < not_after)
);

-- The single-use record: one row per logical request, per effect and per nonce, for ever. The attempt that won is
-- written down and keys nothing.
CREATE TABLE mesh.registrar_consume (
  mesh_id uuid NOT NULL,
  logical_request_key text COLLATE "C" NOT NULL,
  protocol_version text NOT NULL,
  replay_key bytea NOT NULL,
  effect_key bytea NOT NULL,
  operation text COLLATE "C" NOT NULL,
  target text COLLATE "C" NOT NULL,
  artifact_hash text COLLATE "C" NOT NULL,
  run_id text COLLATE "C" NOT NULL,
  binding text COLLATE "C" NOT NULL,
  approval_id text COLLATE "C" NOT NULL,
  attempt_id text COLLATE "C" NOT NULL,
  registration_id uuid NOT NULL,
  member_pubkey text COLLATE "C" NOT NULL,
  consumed_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, logical_request_key),
  CONSTRAINT registrar_consume_digests CHECK (length(replay_key) = 32 AND length(effect_key) = 32),
  CONSTRAINT registrar_consume_artifact CHECK (length(artifact_hash) = 64)
);
CREATE UNIQUE INDEX registrar_consume_replay_key ON mesh.registrar_consume (mesh_id, replay_key);
CREATE UNIQUE INDEX registrar_consume_effect_key ON mesh.registrar_consume (mesh_id, effect_key);
CREATE UNIQUE INDEX registrar_consume_approval ON mesh.registrar_consume (mesh_id, approval_id);

-- The effect: inert until its verification is appended.
CREATE TABLE mesh.registrar_registration (
  mesh_id uuid NOT NULL,
  logical_request_key text COLLATE "C" NOT NULL,
  registration_id uuid NOT NULL,
  operation text COLLATE "C" NOT NULL,
  target text COLLATE "C" NOT NULL,
  artifact_hash text COLLATE "C" NOT NULL,
  run_id text COLLATE "C" NOT NULL,
  binding text COLLATE "C" NOT NULL,
  registered_by text COLLATE "C" NOT NULL,
  registered_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, logical_request_key)
);
CREATE UNIQUE INDEX registrar_registration_id ON mesh.registrar_registration (mesh_id, registration_id);

CREATE TABLE mesh.registrar_verification (
  mesh_id uuid NOT NULL,
  logical_request_key text COLLATE "C" NOT NULL,
  state text NOT NULL,
  verifier text NOT NULL,
  reasons text NOT NULL,
  verified_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, logical_request_key),
  CONSTRAINT registrar_verification_state CHECK (state IN ('registered_closed', 'verify_failed'))
);

CREATE TABLE mesh.registrar_compensation (
  mesh_id uuid NOT NULL,
  logical_request_key text COLLATE "C" NOT NULL,
  approval_id text COLLATE "C" NOT NULL,
  attempt_id text COLLATE "C" NOT NULL,
  compensated_by text COLLATE "C" NOT NULL,
  compensated_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, logical_request_key)
);
CREATE UNIQUE INDEX registrar_compensation_approval ON mesh.registrar_compensation (mesh_id, approval_id);

-- Refusals, and how many of a window were not written one by one. Refers to nothing, since what it tells of was never
-- written.
CREATE TABLE mesh.registrar_audit (
  mesh_id uuid NOT NULL,
  audit_id uuid NOT NULL,
  kind text NOT NULL,
  member_pubkey text COLLATE "C" NOT NULL,
  at timestamptz NOT NULL,
  code text,
  conflict text,
  logical_request_key text COLLATE "C",
  approval_id text COLLATE "C",
  attempt_id text COLLATE "C",
  suppressed integer NOT NULL,
  PRIMARY KEY (mesh_id, audit_id),
  CONSTRAINT registrar_audit_kind
    CHECK ((kind = 'refusal' AND code IS NOT NULL AND suppressed = 0) OR (kind = 'summary' AND suppressed > 0))
);

-- What a member's refusals have used of the audit in the current window.
CREATE TABLE mesh.registrar_audit_window (
  mesh_id uuid NOT NULL,
  member_pubkey text COLLATE "C" NOT NULL,
  window_start bigint NOT NULL,
  written integer NOT NULL,
  suppressed integer NOT NULL,
  PRIMARY KEY (mesh_id, member_pubkey)
);

-- Retries of a consumed key, by attempt while there are few and as one number from then on. A ledger that counts; it
-- decides nothing, and no attempt is part of a key.
CREATE TABLE mesh.registrar_attempt (
  mesh_id uuid NOT NULL,
  logical_request_key text COLLATE "C" NOT NULL,
  seq integer NOT NULL,
  attempt_id text COLLATE "C" NOT NULL,
  member_pubkey text COLLATE "C" NOT NULL,
  tries integer NOT NULL,
  first_at timestamptz NOT NULL,
  last_at timestamptz NOT NULL,
  PRIMARY KEY (mesh_id, logical_request_key, seq)
);

-- Append-only, kept by the database: by triggers for every role, and by missing rights for roles that rights bind.
CREATE FUNCTION mesh.registrar_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the registrar''s records are append-only' USING ERRCODE = 'restrict_violation'; END $$;
CREATE FUNCTION mesh.registrar_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL
    AND to_jsonb(NEW) - 'revoked_at' = to_jsonb(OLD) - 'revoked_at' THEN RETURN NEW; END IF;
  RAISE EXCEPTION 'an approval can only be revoked' USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER registrar_approval_update BEFORE UPDATE ON mesh.registrar_approval
  FOR EACH ROW EXECUTE FUNCTION mesh.registrar_refuse_change();
CREATE TRIGGER registrar_approval_append_only BEFORE DELETE OR TRUNCATE ON mesh.registrar_approval
  FOR EACH STATEMENT EXECUTE FUNCTION mesh.registrar_refuse();
CREATE TRIGGER registrar_consume_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON mesh.registrar_consume
  FOR EACH STATEMENT EXECUTE FUNCTION mesh.registrar_refuse();
CREATE TRIGGER registrar_registration_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON mesh.registrar_registration
  FOR EACH STATEMENT EXECUTE FUNCTION mesh.registrar_refuse();
CREATE TRIGGER registrar_verification_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON mesh.registrar_verification
  FOR EACH STATEMENT EXECUTE FUNCTION mesh.registrar_refuse();
CREATE TRIGGER registrar_compensation_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON mesh.registrar_compensation
  FOR EACH STATEMENT EXECUTE FUNCTION mesh.registrar_refuse();
CREATE TRIGGER registrar_audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON mesh.registrar_audit
  FOR EACH STATEMENT EXECUTE FUNCTION mesh.registrar_refuse();

REVOKE UPDATE, DELETE, TRUNCATE ON mesh.registrar_consume, mesh.registrar_registration, mesh.registrar_verification,
  mesh.registrar_compensation, mesh.registrar_audit FROM PUBLIC, CURRENT_USER;
REVOKE DELETE, TRUNCATE ON mesh.registrar_approval FROM PUBLIC, CURRENT_USER;

-- What an approval's signature covers: 1, the terms alone, as it was at first; 2, the mesh and a label too. A stored approval
-- is verified by what it was signed over.
ALTER TABLE registrar_approval ADD COLUMN signature_version INTEGER NOT NULL DEFAULT 1;

DROP TRIGGER registrar_approval_update;
CREATE TRIGGER registrar_approval_update BEFORE UPDATE ON registrar_approval
WHEN NEW.mesh_id IS NOT OLD.mesh_id OR NEW.approval_id IS NOT OLD.approval_id
  OR NEW.owner_pubkey IS NOT OLD.owner_pubkey OR NEW.operation IS NOT OLD.operation
  OR NEW.target IS NOT OLD.target OR NEW.artifact_hash IS NOT OLD.artifact_hash
  OR NEW.run_id IS NOT OLD.run_id OR NEW.purpose IS NOT OLD.purpose
  OR NEW.logical_request_key IS NOT OLD.logical_request_key OR NEW.not_before IS NOT OLD.not_before
  OR NEW.not_after IS NOT OLD.not_after OR NEW.signature IS NOT OLD.signature
  OR NEW.signature_version IS NOT OLD.signature_version
  OR NEW.nonce_hash IS NOT OLD.nonce_hash OR NEW.approved_at IS NOT OLD.approved_at
  OR OLD.revoked_at IS NOT NULL OR NEW.revoked_at IS NULL
BEGIN SELECT RAISE(ABORT, 'an approval can only be revoked'); END;

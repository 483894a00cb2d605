-- The epochs that nobody has settled: those that run, and those that are uncertain. A key has one at most, its newest.
CREATE INDEX once_claim_unsettled ON once_claim (mesh_id, key) WHERE settled_how IS NULL;
CREATE INDEX registrar_verification_failed ON registrar_verification (mesh_id, logical_request_key)
WHERE state = 'verify_failed';

-- Brokers look every moment who was revoked through another one.
CREATE INDEX member_revoked ON mesh.member (revoked_at) WHERE revoked_at IS NOT NULL;

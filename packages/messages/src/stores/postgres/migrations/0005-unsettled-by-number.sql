-- What a recipient has not confirmed is found by one number of mesh and recipient. Both together are a hundred bytes, three
-- times in every message to three subscribers, and were compared at every step down this index (docs/decisions/0099).
DROP INDEX mesh.delivery_queue_unsettled;
CREATE INDEX delivery_queue_unsettled
  ON mesh.delivery_queue (hashtextextended(recipient_pubkey, uuid_hash_extended(mesh_id, 0)), history_id)
  WHERE settled_at IS NULL;

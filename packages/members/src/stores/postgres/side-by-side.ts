// Finds the members that were revoked lately. Brokers that share a store look for them, because the broker that revoked
// a member may have had no way to notify the others.
import type { Postgres } from "@claudemesh/storage/postgres";

export type RevokedMember = { readonly meshId: string; readonly pubkey: string };

/** By the clock of the broker that revoked them. */
export function findRevokedSince(postgres: Postgres, sinceMs: number): Promise<RevokedMember[]> {
  return postgres.read<RevokedMember>(
    'SELECT mesh_id AS "meshId", pubkey FROM mesh.member WHERE revoked_at >= $1',
    [new Date(sinceMs)],
    "revoked_since",
  );
}

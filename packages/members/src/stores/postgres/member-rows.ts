// A member's row as PostgreSQL gives it, and text as PostgreSQL can compare it.
import type { Member, Role } from "../../ports.ts";

export type MemberRow = {
  mesh_id: string;
  pubkey: string;
  name: string;
  role: Role;
  joined_at: Date;
  revoked_at: Date | null;
};

export const memberColumns = "m.mesh_id, m.pubkey, m.name, m.role, m.joined_at, m.revoked_at";

export function toMember(row: MemberRow): Member {
  return {
    meshId: row.mesh_id,
    pubkey: row.pubkey,
    name: row.name,
    role: row.role,
    joinedAt: row.joined_at.getTime(),
    revoked: row.revoked_at !== null,
  };
}

/** PostgreSQL refuses text with U+0000, which no stored value holds: it equals nothing, and null does so too. */
export function comparable(text: string): [string | null] {
  return [text.includes("\0") ? null : text];
}

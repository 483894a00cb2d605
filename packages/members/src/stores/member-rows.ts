// Rows as both stores read them, and the records they make. Statements are each store's own, and times are as the
// store's driver gives them.
import type { Member, Page, Role, TokenRecord } from "../ports.ts";

export type MemberRow = {
  readonly mesh_id: string;
  readonly pubkey: string;
  readonly name: string;
  readonly role: Role;
  readonly joined_at: Date | number;
  readonly revoked_at: Date | number | null;
};

/** Of `member m`. */
export const memberColumns = "m.mesh_id, m.pubkey, m.name, m.role, m.joined_at, m.revoked_at";

export function toMember(row: MemberRow): Member {
  return {
    meshId: row.mesh_id,
    pubkey: row.pubkey,
    name: row.name,
    role: row.role,
    joinedAt: Number(row.joined_at),
    revoked: row.revoked_at !== null,
  };
}

export type TokenRow = {
  readonly id: string;
  readonly label: string;
  readonly created_at: Date | number;
  readonly revoked_at: Date | number | null;
};

export function toTokenRecord({ id, label, created_at, revoked_at }: TokenRow): TokenRecord {
  return { id, label, createdAt: Number(created_at), revokedAt: revoked_at === null ? undefined : Number(revoked_at) };
}

export function pageOf<T>(items: readonly T[], limit: number, cursorOf: (item: T) => string): Page<T> {
  const last = items.length === limit ? items.at(-1) : undefined;
  return { items, nextCursor: last === undefined ? undefined : cursorOf(last) };
}

// The rows that both stores read, and the records made of them. Each store has its own statements, and times come as
// the store's driver gives them.
import type { InviteRecord, Member, Page, Role, SettingRecord, TokenRecord } from "../ports.ts";

export type MemberRow = {
  readonly mesh_id: string;
  readonly pubkey: string;
  readonly name: string;
  readonly role: Role;
  readonly joined_at: Date | number;
  readonly revoked_at: Date | number | null;
};

/** The columns of `member m`. */
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

export type InviteRow = {
  readonly id: string;
  readonly created_by: string;
  readonly created_at: Date | number;
  readonly expires_at: Date | number;
  readonly used_by: string | null;
  readonly used_at: Date | number | null;
  readonly revoked_at: Date | number | null;
  readonly made_by_owner: boolean | number;
  readonly member_name: string | null;
};

/** The columns of `invite i`. Whether an owner made it is expressed in each store's own SQL. */
export const inviteColumns =
  "i.id, i.created_by, i.created_at, i.expires_at, i.used_by, i.used_at, i.revoked_at, i.member_name";

export function toInviteRecord(row: InviteRow): InviteRecord {
  return {
    id: row.id,
    createdBy: row.created_by,
    createdAt: Number(row.created_at),
    expiresAt: Number(row.expires_at),
    usedBy: row.used_by ?? undefined,
    usedAt: timeOf(row.used_at),
    revokedAt: timeOf(row.revoked_at),
    madeByOwner: Boolean(row.made_by_owner),
    memberName: row.member_name ?? undefined,
  };
}

function timeOf(time: Date | number | null): number | undefined {
  return time === null ? undefined : Number(time);
}

export type TokenRow = {
  readonly id: string;
  readonly label: string;
  readonly created_at: Date | number;
  readonly revoked_at: Date | number | null;
};

export function toTokenRecord({ id, label, created_at, revoked_at }: TokenRow): TokenRecord {
  return { id, label, createdAt: Number(created_at), revokedAt: timeOf(revoked_at) };
}

export type SettingRow = {
  readonly key: string;
  readonly value: string;
  readonly set_by: string;
  readonly set_at: Date | number;
};

export function toSettingRecord({ key, value, set_by, set_at }: SettingRow): SettingRecord {
  return { key, value, setBy: set_by, setAt: Number(set_at) };
}

export function pageOf<T>(items: readonly T[], limit: number, cursorOf: (item: T) => string): Page<T> {
  const last = items.length === limit ? items.at(-1) : undefined;
  return { items, nextCursor: last === undefined ? undefined : cursorOf(last) };
}

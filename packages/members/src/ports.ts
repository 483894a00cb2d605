// What the member services need from a store, each with its guarantee. Every method that changes something is one
// transaction, durable when it resolves, and safe to call again with the same arguments.

export type Role = "owner" | "member";

export type Mesh = { readonly id: string; readonly name: string };

export type Member = {
  readonly meshId: string;
  readonly pubkey: string;
  readonly name: string;
  readonly role: Role;
  readonly joinedAt: number;
  readonly revoked: boolean;
};

/** A member without its role: the role can change while a connection lasts, the rest cannot. */
export type PlainMember = Omit<Member, "role">;

export type MeshMember = { readonly mesh: Mesh; readonly member: Member };

export type TokenRecord = {
  readonly id: string;
  readonly label: string;
  readonly createdAt: number;
  readonly revokedAt: number | undefined;
};

/** An invite without its secret, of which only the hash is stored. */
export type InviteRecord = {
  readonly id: string;
  readonly createdBy: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly usedBy: string | undefined;
  readonly usedAt: number | undefined;
  readonly revokedAt: number | undefined;
  /** Whether the member that made it is an owner now: an invite of a former owner is not valid. */
  readonly madeByOwner: boolean;
  /** The name that the new member gets; undefined: any name that is free. */
  readonly memberName: string | undefined;
};

export type NewInvite = Pick<InviteRecord, "id" | "createdBy" | "expiresAt"> & {
  readonly secretHash: Uint8Array;
  readonly memberName?: string | undefined;
};

/** What an owner has set for the mesh, as text. The protocol knows which values are valid. */
export type SettingRecord = {
  readonly key: string;
  readonly value: string;
  readonly setBy: string;
  readonly setAt: number;
};

export type CreateMeshOutcome =
  | { readonly type: "created" | "exists"; readonly mesh: Mesh; readonly owner: Member }
  /** The name belongs to a mesh that this key does not own. */
  | { readonly type: "different" };

export type JoinOutcome =
  | { readonly type: "joined" | "already_member"; readonly member: Member }
  /**
   * The invite is unknown, expired, revoked or used by another key, or the member was revoked. All get one answer, so
   * that a caller learns nothing.
   */
  | { readonly type: "refused" }
  /** These are given to the holder of a live invite alone, and the invite stays live. */
  | { readonly type: "name_taken" | "name_missing" }
  | { readonly type: "other_name"; readonly name: string };

/** The things whose number in a mesh has a limit. */
export type CountedMemberThing = "tokens" | "invites";

export type RevokeOutcome =
  | "revoked"
  /** A retry after a lost answer: nothing more happens. */
  | "already_revoked"
  | "not_found"
  /** A mesh keeps at least one owner. */
  | "last_owner"
  /** The caller is not, or no longer, a live owner of the mesh. */
  | "not_an_owner";

export type InviteRevokeOutcome =
  | { readonly type: "revoked" | "not_found" }
  /** A retry after a lost answer: nothing more happens. */
  | { readonly type: "already_revoked" }
  /** It has let this key in, which stays a member. */
  | { readonly type: "used"; readonly by: string }
  /** The caller is not, or no longer, a live owner of the mesh. */
  | { readonly type: "not_an_owner" };

export type RoleOutcome =
  | "changed"
  /** A retry after a lost answer: nothing more happens. */
  | "unchanged"
  | "not_found"
  /** A mesh keeps at least one owner. */
  | "last_owner"
  /** The caller is not, or no longer, a live owner of the mesh. */
  | "not_an_owner";

export type Page<T> = { readonly items: readonly T[]; readonly nextCursor: string | undefined };

export type MembersStore = {
  /** Mesh and owner appear together or not at all. */
  readonly createMesh: (
    mesh: Mesh,
    owner: { pubkey: string; name: string },
    nowMs: number,
  ) => Promise<CreateMeshOutcome>;
  readonly findMesh: (nameOrId: string) => Promise<Mesh | undefined>;
  readonly findMember: (meshId: string, pubkey: string) => Promise<Member | undefined>;
  /** Whether a member or a former member has this name, without regard to case. */
  readonly isNameTaken: (meshId: string, name: string) => Promise<boolean>;
  /** Those of these keys that do not belong to a live member. */
  readonly findRevoked: (meshId: string, pubkeys: readonly string[]) => Promise<string[]>;
  /** In order of public key; revoked members are not listed. */
  readonly listMembers: (meshId: string, after: string, limit: number) => Promise<Page<Member>>;
  readonly addInvite: (meshId: string, invite: NewInvite, nowMs: number) => Promise<void>;
  /** In order of id: all that were ever made, in whatever state. */
  readonly listInvites: (meshId: string, after: string, limit: number) => Promise<Page<InviteRecord>>;
  /** Under the mesh's lock: a join by this invite commits before the revocation, or sees it and is refused. */
  readonly revokeInvite: (meshId: string, by: string, inviteId: string, nowMs: number) => Promise<InviteRevokeOutcome>;
  /**
   * The invite is spent in the transaction that adds the member, so that it lets in exactly one key. It is valid only
   * while the member that made it is an owner. No two members get the same name, without regard to case, even where one
   * of them has been revoked: joins of a mesh run one after the other. Without a name the member gets the one that the
   * invite fixes.
   */
  readonly join: (
    meshId: string,
    secretHash: Uint8Array,
    member: { pubkey: string; name: string | undefined },
    nowMs: number,
  ) => Promise<JoinOutcome>;
  readonly addToken: (
    meshId: string,
    token: { id: string; tokenHash: string; pubkey: string; label: string },
    nowMs: number,
  ) => Promise<void>;
  /**
   * The mesh, by name or id, with the member that a live token of it belongs to; undefined for a revoked token. The
   * member itself may be revoked. Sees every revocation that was committed before the call.
   */
  readonly findByToken: (nameOrId: string, tokenHash: string) => Promise<MeshMember | undefined>;
  readonly listTokens: (meshId: string, pubkey: string, after: string, limit: number) => Promise<Page<TokenRecord>>;
  /** False where this member has no such token. */
  readonly revokeToken: (meshId: string, pubkey: string, tokenId: string, nowMs: number) => Promise<boolean>;
  /**
   * Ends a membership and its tokens under the mesh's lock: an accept of this member commits before it, or sees it
   * and is refused.
   */
  readonly revokeMember: (meshId: string, by: string, pubkey: string, nowMs: number) => Promise<RevokeOutcome>;
  /** Under the mesh's lock too: of two owners that step down at once, one stays an owner. */
  readonly setRole: (meshId: string, by: string, pubkey: string, role: Role) => Promise<RoleOutcome>;
  /** All that owners have set for the mesh, in order of key. */
  readonly listSettings: (meshId: string) => Promise<readonly SettingRecord[]>;
  /** Under the mesh's lock. Without a value the key returns to its default. False where the caller is no live owner. */
  readonly changeSetting: (
    meshId: string,
    by: string,
    setting: { readonly key: string; readonly value: string | undefined },
    nowMs: number,
  ) => Promise<boolean>;
  /** Counts tokens that are not revoked, or invites that can still be used, up to `upTo`. */
  readonly count: (meshId: string, what: CountedMemberThing, upTo: number, nowMs: number) => Promise<number>;
};

// Which members are connected, and what they say of themselves. Presence is a lease: the broker that holds a connection renews
// it. A lease that is not renewed ends by the clock, also when its broker has died.
import type { Role } from "@claudemesh/members/ports";

export type PresenceLease = { readonly meshId: string; readonly pubkey: string; readonly connectionId: string };

export type Profile = {
  readonly summary: string;
  readonly status: string;
  /** An invisible member is shown to itself alone. */
  readonly visible: boolean;
  readonly avatar: string;
  readonly title: string;
  readonly bio: string;
  readonly capabilities: readonly string[];
};

/** A member that is connected. */
export type Peer = {
  readonly pubkey: string;
  readonly name: string;
  readonly role: Role;
  readonly connectedAtMs: number;
  readonly profile: Profile;
};

export type PresenceStore = {
  /** Takes these leases, or renews those that are there. */
  readonly hold: (leases: readonly PresenceLease[], nowMs: number, expiresAtMs: number) => Promise<void>;
  readonly release: (leases: readonly PresenceLease[]) => Promise<void>;
  /**
   * Live members with a lease that has not expired, by public key, less the invisible ones other than the reader.
   * The answer fits a frame.
   */
  readonly peers: (
    query: { meshId: string; reader: string | undefined; after: string; limit: number },
    nowMs: number,
  ) => Promise<{ items: Peer[]; nextCursor: string | undefined }>;
  /** Forgets up to `limit` leases that have expired; returns how many. */
  readonly sweep: (nowMs: number, limit: number) => Promise<number>;
  /** What is not given stays as it was. Returns the whole profile. */
  readonly setProfile: (meshId: string, pubkey: string, change: Partial<Profile>, nowMs: number) => Promise<Profile>;
};

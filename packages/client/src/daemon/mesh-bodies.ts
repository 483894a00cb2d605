// Answers that a daemon passes on from the broker: topics, queues, peers.

import type { PeerItem } from "@claudemesh/protocol/wire/frames";
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";

export type Topic = {
  readonly name: string;
  readonly post_policy: "members" | "subscribers";
  readonly subscribed: boolean;
  /**
   * These three are present where the list was asked for with `counts`; 10,000 subscribers means at least that many.
   */
  readonly subscribers?: number;
  readonly messages?: number;
  readonly last_message_at?: number | null;
};

type ListQuery = { readonly limit?: number; readonly cursor?: string };

export type TopicsQuery = ListQuery & { readonly counts?: boolean };

/** What waits in a queue; 10,000 means at least that many. */
export type QueueItem = {
  readonly id: string;
  readonly max_deliveries: number;
  readonly created_at: number;
  readonly depth: number;
  readonly leased: number;
  readonly parked: number;
  /** When the oldest waiting message was accepted. */
  readonly oldest_at: number | null;
};

export type OnceStateName = "running" | "uncertain" | "done" | "released";

export type OnceQuery = ListQuery & { readonly state?: OnceStateName };

/** A key of `once` with its newest epoch. */
export type OnceItem = {
  readonly key: string;
  readonly epoch: number;
  readonly state: OnceStateName;
  readonly claim_id: string;
  readonly holder_pubkey: string;
  readonly inputs_fingerprint: string;
  readonly claimed_at: number;
  readonly lease_until: number;
  readonly outcome?: "done" | "not_done";
  readonly settled_by?: "record" | "resolve";
  readonly settled_by_pubkey?: string;
  readonly settled_at?: number;
};

export type Subscription = { readonly name: string; readonly subscribed: boolean };

/** `deliveries`: how often it has been delivered, including this time. */
export type LeasedMessage = HistoryItem & { readonly deliveries: number };

/** Where no message was available, token and time are null, and the request id is still free. */
export type Lease = {
  readonly items: readonly LeasedMessage[];
  readonly lease_token: string | null;
  readonly expires_at: number | null;
};

/** How this token settled each message, now or earlier: the first settlement is final. */
export type Settlements = {
  readonly items: readonly { readonly broker_message_id: string; readonly settlement: "acked" | "nacked" }[];
};

export type ParkedMessage = HistoryItem & { readonly deliveries: number; readonly parked_at: number };

/** `next_after` is the `after` of the next page; null at the end. */
export type ParkedPage = { readonly items: readonly ParkedMessage[]; readonly next_after: number | null };

export type ParkedQuery = { readonly limit?: number; readonly after?: number };

/** A member that is connected, with what it says about itself. */
export type Peer = PeerItem;

/** How far the key of a name is trusted: `changed` where another key is pinned here. */
export type PeerTrust = "unpinned" | "pinned" | "verified" | "changed";

/** A peer, and what this host knows of its key. `fingerprint` is the first 16 hex characters, in groups of four. */
export type KnownPeer = Peer & { readonly fingerprint: string; readonly trust: PeerTrust };

/** A name, its pinned key if there is one, and the key that its member has now. */
export type Pin = {
  readonly name: string;
  readonly trust: PeerTrust;
  readonly pubkey: string;
  readonly fingerprint: string;
  readonly pinned_at: number | null;
  readonly verified_at: number | null;
  /** Null where no member has the name now, or several do. */
  readonly current_pubkey: string | null;
  readonly current_fingerprint: string | null;
};

export type PinWithCode = Pin & {
  /** To be compared with the member by voice: eight groups of five digits. */
  readonly code: string;
};

export type PeerKeyChanged = {
  readonly name: string;
  readonly pinned_pubkey: string;
  readonly pubkey: string;
  readonly pinned_fingerprint: string;
  readonly fingerprint: string;
};

export type PeerLeft = { readonly pubkey: string; readonly name: string | null };

/** What a member says about itself. */
export type Profile = Omit<PeerItem, "name" | "role" | "connected_at">;

// Answers that a daemon passes on from the broker: topics, queues, peers.
import type { PeerItem } from "@claudemesh/protocol/wire/frames";
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";

export type Topic = {
  readonly name: string;
  readonly post_policy: "members" | "subscribers";
  readonly subscribed: boolean;
};

export type Subscription = { readonly name: string; readonly subscribed: boolean };

/** `deliveries`: how often it has been handed out, this time included. */
export type LeasedMessage = HistoryItem & { readonly deliveries: number };

/** With nothing to hand out, token and time are null, and the request id is still free. */
export type Lease = {
  readonly items: readonly LeasedMessage[];
  readonly lease_token: string | null;
  readonly expires_at: number | null;
};

/** How this token settled each message, now or earlier: the first settlement stands. */
export type Settlements = {
  readonly items: readonly { readonly broker_message_id: string; readonly settlement: "acked" | "nacked" }[];
};

export type ParkedMessage = HistoryItem & { readonly deliveries: number; readonly parked_at: number };

/** `next_after` is the `after` of the next page; null at the end. */
export type ParkedPage = { readonly items: readonly ParkedMessage[]; readonly next_after: number | null };

export type ParkedQuery = { readonly limit?: number; readonly after?: number };

/** A member that is connected, with what it says about itself. */
export type Peer = PeerItem;

export type PeerLeft = { readonly pubkey: string; readonly name: string | null };

/** What a member says about itself. */
export type Profile = Omit<PeerItem, "name" | "role" | "connected_at">;

// The shapes of what a daemon's local API answers about inbox, outbox and events. Fields that a newer daemon adds are
// not named here.
import type { ErrorBody } from "@claudemesh/protocol/errors";
import type { DestinationKind } from "@claudemesh/protocol/messages/addresses";
import type { EnvelopeVersion, Meta, Priority } from "@claudemesh/protocol/messages/envelope";
import type { Fate } from "@claudemesh/protocol/messages/fate";
import type { OutboxStatus } from "@claudemesh/protocol/messages/outbox-row";
import type { KnownPeer, PeerKeyChanged, PeerLeft } from "./mesh-bodies.ts";
import type { BrokerStatusBody } from "./report-bodies.ts";

export type SendBody = {
  readonly client_message_id: string;
  readonly outbox_id: string;
  readonly status: "queued" | "inflight" | "done";
  readonly duplicate: boolean;
  /** The first 16 hex characters. */
  readonly request_fingerprint: string;
  /** This field and those below are present once the broker has accepted the message. */
  readonly broker_message_id?: string;
  readonly history_id?: number;
  /** The broker cannot be reached now: the message waits on this host. */
  readonly broker?: "away";
  /** The mesh's budget is spent: queued messages wait, since and until these times. */
  readonly rate_limited?: RateLimited;
  /** This member was removed from the mesh: the message waits on this host until it is too old. */
  readonly membership_ended_at?: number;
  /** No member but the sender is subscribed to this topic. */
  readonly subscribers?: 0;
};

export type RateLimited = { readonly since: number; readonly until: number };

/** The answer that each send would have got alone, in their order. */
export type SendManyBody = {
  readonly results: readonly { readonly status: number; readonly body: SendBody | ErrorBody }[];
};

export type InboxItem = {
  readonly id: string;
  readonly client_message_id: string;
  readonly broker_message_id: string;
  readonly history_id: number;
  readonly mesh: string;
  readonly topic: string | null;
  readonly sender_pubkey: string;
  readonly sender_name: string | null;
  /** Null where the bytes are not text or could not be unsealed. */
  readonly body: string | null;
  readonly body_base64?: string;
  /**
   * True: sealed, and not for the keys that this member has. `relabelled`: sender, recipient, id, reply or priority
   * inside the box differ from what the broker says, or the broker says that it is for another member.
   */
  readonly unreadable?: true | "relabelled";
  /** Always false for topics. Null for messages from before this field was recorded. */
  readonly sealed: boolean | null;
  /** Mailboxes that the sender named inside the box. */
  readonly from_agent?: string;
  readonly to_agent?: string;
  readonly meta: Meta | null;
  readonly priority: Priority;
  readonly reply_to_id: string | null;
  readonly received_at: number;
  readonly read_at: number | null;
};

export type Page<Item> = { readonly items: readonly Item[]; readonly next_cursor: string | null };

/** A page of a list that can be read in both directions; with `newest` or `before` it also describes what is older. */
export type PageEitherWay<Item> = Page<Item> & {
  /** The `before` of the page with older items; null at the beginning of the list. */
  readonly prev_cursor?: string | null;
  /** How many items are before the page, counted up to 1000. */
  readonly older?: number;
};

/** Where to read a list: from its beginning, after `cursor`, before `before`, or with `newest` at its end. */
export type ListPosition = {
  readonly limit?: number;
  readonly cursor?: string;
  readonly before?: string;
  readonly newest?: boolean;
};

/** `again`: it was offered to this reader before, and the answer may have been lost. */
export type NextItem = InboxItem & { readonly again?: true };

export type NextBody = {
  readonly reader: string;
  readonly items: readonly NextItem[];
  /** Give this back with the next request once the answer was received. Until then the same items come again. */
  readonly acknowledge: string | null;
  /** Everything up to this inbox id was acknowledged. */
  readonly position: string;
  /** How many unread messages follow these, counted up to 1000. */
  readonly waiting: number;
  /** How many unread messages are older than the reader, counted up to 1000, and the `before` that lists them. */
  readonly older: number;
  readonly prev_cursor: string | null;
};

export type OutboxItem = {
  readonly id: string;
  readonly client_message_id: string;
  readonly to: string;
  readonly destination_kind: DestinationKind;
  readonly destination_ref: string;
  readonly priority: Priority;
  readonly meta: Meta | null;
  readonly reply_to_id: string | null;
  readonly envelope_version: EnvelopeVersion;
  /** The first 16 hex characters. */
  readonly request_fingerprint: string;
  readonly wire_fingerprint: string;
  readonly status: OutboxStatus;
  readonly fate: Fate;
  readonly enqueued_at: number;
  readonly attempts: number;
  /** Tries that ended without a refusal. */
  readonly unanswered: number;
  /** The broker has promised never to accept it. */
  readonly fenced: boolean;
  readonly next_attempt_at: number;
  readonly last_error: string | null;
  readonly delivered_at: number | null;
  readonly broker_message_id: string | null;
  readonly history_id: number | null;
  readonly aborted_at: number | null;
  readonly aborted_by: string | null;
  readonly superseded_by: string | null;
  readonly accept_duplicate: boolean;
  /** For a dead row that was dismissed: when, by which operator, and the operator's own words. */
  readonly dismissed_at: number | null;
  readonly dismissed_by: string | null;
  readonly dismissed_why: string | null;
};

/** A row and the chain of requeues that it belongs to, oldest first. */
export type OutboxChain = { readonly row: OutboxItem; readonly chain: readonly OutboxItem[] };

export type Requeued = {
  readonly old: { readonly id: string; readonly client_message_id: string; readonly status: "aborted" };
  readonly new: { readonly outbox_id: string; readonly client_message_id: string };
};

export type Dismissed = {
  readonly id: string;
  readonly client_message_id: string;
  readonly status: "dead";
  readonly dismissed_at: number;
  readonly dismissed_by: string;
  readonly dismissed_why: string;
};

/** `more`: time ran out before all rows were done, so ask again. */
export type Pruned = { readonly tombstones_made: number; readonly more: boolean };

export type ReadMark = { readonly id: string; readonly client_message_id: string; readonly read_at: number };

export type InboxQuery = ListPosition & {
  /** Milliseconds since the epoch. */
  readonly since?: number;
  readonly topic?: string;
  readonly from?: string;
  /** True: only what is not marked as read. */
  readonly unread?: boolean;
};

export type PageQuery = { readonly limit?: number; readonly cursor?: string };

export type SearchQuery = PageQuery & { readonly q: string };

/** Settings by their names in config.toml: those that took effect, and those that need a restart. */
export type Reloaded = { readonly applied: readonly string[]; readonly needs_restart: readonly string[] };

export type TokenRotation = { readonly rotated_at: number; readonly old_token_valid_until: number };

/** `id` resumes after this event, whatever its kind. */
export type DaemonEvent =
  | { readonly kind: "message"; readonly id: string; readonly data: InboxItem }
  | { readonly kind: "peer_join"; readonly id: string; readonly data: KnownPeer }
  /** The name is null where this host did not know it. */
  | { readonly kind: "peer_leave"; readonly id: string; readonly data: PeerLeft }
  /** A name that is pinned on this host has another key at the broker. */
  | { readonly kind: "peer_key_changed"; readonly id: string; readonly data: PeerKeyChanged }
  | { readonly kind: "broker_status"; readonly id: string; readonly data: BrokerStatusBody }
  | { readonly kind: "outbox"; readonly id: string; readonly data: OutboxChangeBody }
  /** Most of `[outbox] max_bytes` is used. */
  | { readonly kind: "outbox_pressure_high"; readonly id: string; readonly data: OutboxPressureBody }
  /** The reader was too slow: events other than messages were lost, and the stream goes on after `resume_after`. */
  | { readonly kind: "lagged"; readonly id: string; readonly data: LaggedBody };

export type OutboxChangeBody = {
  readonly id: string;
  readonly client_message_id: string;
  readonly status: OutboxStatus;
};

export type OutboxPressureBody = { readonly used_bytes: number; readonly max_bytes: number };

export type LaggedBody = { readonly resume_after: string; readonly events_lost: number };

export type OutboxQuery = ListPosition & { readonly status?: OutboxStatus };

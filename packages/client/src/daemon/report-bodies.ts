// What a daemon says about itself and about messages: the answers of health, version, compat, messages and audit. The
// daemon's own reports are checked against these types, so that the two cannot drift apart.
import type { AnnouncedFeatures } from "@claudemesh/protocol/features";
import type { Destination } from "@claudemesh/protocol/messages/addresses";
import type { Fate } from "@claudemesh/protocol/messages/fate";
import type { OutboxStatus } from "@claudemesh/protocol/messages/outbox-row";

export type VersionBody = {
  readonly name: string;
  readonly version: string;
  readonly protocol: number;
  readonly mesh: string;
  readonly mesh_id: string;
  readonly member_pubkey: string;
  readonly pid: number;
  /** Present where the broker has said that this member's membership has ended. */
  readonly membership_ended_at?: number;
};

/** `reason` and `detail` say why it is offline, or stopped for good. */
export type BrokerStatusBody = {
  readonly state: "connecting" | "online" | "offline" | "stopped";
  readonly reason?: string;
  readonly detail?: string;
  /** While it is online: the key that the broker has proven. */
  readonly broker_key?: string;
  /** Where it is offline because the broker showed another key than this home trusts. */
  readonly expected_key?: string;
  readonly seen_key?: string;
  /** A notice for the operator, shown once. */
  readonly note?: string;
  /**
   * The address of the broker that is connected or tried next; the other brokers of the mesh; and when the next try
   * begins.
   */
  readonly url?: string;
  readonly others?: readonly string[];
  readonly next_try_at?: number;
};

export type DrainStatusBody =
  | { readonly state: "running" }
  | { readonly state: "waiting_for_broker" }
  /** `rate_limited_since`: the broker asked for the pause, because the mesh's budget is spent. */
  | { readonly state: "resting"; readonly until: number; readonly rate_limited_since?: number }
  | { readonly state: "halted"; readonly reason: "unauthorized"; readonly detail: string }
  | { readonly state: "stopped" };

export type HealthBody = {
  readonly status: "ok" | "degraded";
  readonly mesh: string;
  readonly mesh_id: string;
  readonly member: { readonly name: string; readonly pubkey: string };
  readonly pid: number;
  readonly started_at: number;
  readonly membership: { readonly state: "member" } | { readonly state: "ended"; readonly since: number };
  readonly broker: BrokerStatusBody;
  readonly drain: DrainStatusBody;
  readonly outbox: {
    readonly pending: number;
    readonly inflight: number;
    readonly dead: number;
    /** Dead rows that the operator dismissed: no alarm. */
    readonly dismissed: number;
    readonly used_bytes: number;
    readonly max_bytes: number;
  };
  readonly event_streams: number;
  readonly inbox: { readonly unreadable: number; readonly rebuilding: boolean };
  /** Present where faults were planted for a test. */
  readonly failpoints?: string;
};

export type CompatBody = {
  readonly daemon_version: string;
  readonly protocol: number;
  /** False: agreed on in an earlier connection, or never yet. */
  readonly current: boolean;
  readonly negotiated: AnnouncedFeatures | null;
  readonly limits: { readonly inline_bytes: number; readonly max_age_hours: number };
};

export type MessageStateName = "queued" | "inflight" | "stored" | "delivered" | "read" | "expired" | "dead" | "aborted";

/** One event in the life of a message. `at` is null where its time was not recorded. */
export type MessageStage = {
  readonly stage: MessageStateName;
  readonly at: number | null;
  readonly [detail: string]: unknown;
};

export type MessageDelivery = {
  readonly recipient_pubkey: string;
  readonly recipient_name: string | null;
  readonly state: "unsettled" | "delivered" | "expired";
  readonly settled_at: number | null;
};

/** One row of a chain of requeues. */
export type MessageChainLink = {
  readonly outbox_id: string;
  readonly client_message_id: string;
  readonly status: OutboxStatus;
  readonly fate: Fate;
  readonly enqueued_at: number;
  readonly broker_message_id: string | null;
  readonly superseded_by: string | null;
  readonly accept_duplicate: boolean;
};

/** `code` is stable; `text` is a sentence or two, with the commands that help. */
export type MessageNote = {
  readonly code: "dead" | "dismissed" | "no_recipients" | "broker_away" | "rate_limited" | "membership_ended";
  readonly text: string;
};

/** What is known about one message. Unknown facts are null. */
export type MessageFacts = {
  readonly id: string;
  readonly client_message_id: string | null;
  readonly outbox_id: string | null;
  readonly inbox_id: string | null;
  readonly broker_message_id: string | null;
  readonly history_id: number | null;
  readonly to: string | null;
  readonly destination: Destination | null;
  readonly sender_pubkey: string | null;
  readonly sender_name: string | null;
  readonly state: MessageStateName;
  /** Null for a message that was not sent from here. */
  readonly fate: Fate | null;
  readonly attempts: number | null;
  readonly next_attempt_at: number | null;
  readonly last_error: string | null;
  readonly broker: "asked" | "not_asked" | "not_found" | "not_reachable";
  readonly stages: readonly MessageStage[];
  readonly counts: { readonly unsettled: number; readonly delivered: number; readonly expired: number } | null;
  readonly deliveries: readonly MessageDelivery[] | null;
  readonly queue: { readonly state: string; readonly deliveries: number; readonly settled_at: number | null } | null;
  /** A dead row that the operator dismissed. */
  readonly dismissed: { readonly at: number; readonly by: string; readonly why: string } | null;
  /** What its sender should know or do now. */
  readonly notes: readonly MessageNote[];
  readonly chain: readonly MessageChainLink[];
};

export type AuditLayer = "outbox" | "broker" | "deliveries" | "inbox";

export type AuditImbalance = { readonly layer: AuditLayer; readonly id: string; readonly what: string };

export type AuditReport = {
  readonly layers: readonly {
    readonly layer: AuditLayer;
    readonly total: number;
    readonly classes: Readonly<Record<string, number>>;
    readonly imbalances: number;
    readonly balanced: boolean;
  }[];
  /** Up to a hundred of each layer by name; the numbers in `layers` count all of them. */
  readonly imbalances: readonly AuditImbalance[];
  /** No record that was checked is out of balance. */
  readonly balanced: boolean;
  /** False: the broker did not answer, so not everything was checked. */
  readonly complete: boolean;
};

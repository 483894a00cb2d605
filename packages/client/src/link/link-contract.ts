// What a link to a broker promises to the daemon and the SDK: one authenticated socket, requests with answers, pushes,
// reconnection. link.ts implements it; the protocol's table of operations says what can be asked over it.
import type { NegotiatedFeatures, NegotiationFailure } from "@claudemesh/protocol/features";
import type { HelloReplyBody, PushFrame } from "@claudemesh/protocol/wire/frames";
import type { OperationName } from "@claudemesh/protocol/wire/operations";
import type { ConnectionKind } from "@claudemesh/protocol/wire/signing";
import type { SealingIdentity } from "../seal/outgoing.ts";
import type { LinkRoute } from "./broker-route.ts";
import type { BrokerTrust } from "./broker-trust.ts";

/** The member that connects. `sign` makes an ed25519 signature of 64 bytes. */
export type MemberIdentity = SealingIdentity & {
  readonly meshId: string;
  readonly publicKey: string;
  readonly sign: (bytes: Uint8Array) => Uint8Array;
};

/**
 * How a request ended. `not_sent`: no byte of it left this host. `timed_out` and `connection_lost`: the broker may or
 * may not have carried it out.
 */
export type LinkOutcome =
  | { readonly type: "answered"; readonly status: number; readonly body: unknown }
  | { readonly type: "timed_out" }
  | { readonly type: "connection_lost" }
  | { readonly type: "not_sent" };

export type LinkStatus =
  | { readonly state: "connecting" }
  | {
      readonly state: "online";
      readonly hello: HelloReplyBody;
      readonly features: NegotiatedFeatures;
      /** The key that the broker has proven to hold. */
      readonly brokerKey: string;
      /** No key was pinned before, and this one is trusted from here on. */
      readonly isFirstKey?: boolean;
      /** Optional parameters of the announcement that this side did not understand; reported once, for a log. */
      readonly defaulted?: readonly string[];
    }
  /**
   * Down, and tried again with backoff. `unauthorized`: the broker refuses this member. `member_revoked`: the broker
   * refuses it because its membership has ended. `not_our_broker`: the other side has not proven to hold our broker's
   * key, and nothing that it sends counts. `broker_too_old`: it speaks first, as brokers did that could not prove
   * anything.
   */
  | {
      readonly state: "offline";
      readonly reason:
        | "unreachable"
        | "lost"
        | "unauthorized"
        | "member_revoked"
        | "protocol_error"
        | "broker_stopping"
        | "not_our_broker"
        | "broker_too_old";
      readonly detail: string;
      /** Present where a different key is the reason. */
      readonly keys?: SeenKeys;
    }
  /** Down for good: reconnecting without the user would be wrong. */
  | {
      readonly state: "stopped";
      readonly reason:
        | "closed"
        | "replaced_by_newer"
        | "older_connection_kept"
        | "feature_unavailable"
        | "feature_param_invalid"
        | "feature_param_below_floor";
      readonly detail: string;
      /** The broker's announcement, where negotiation failed. */
      readonly negotiation?: { readonly failure: NegotiationFailure; readonly announced: unknown };
    };

/** The key that was expected, and the one that the other side has shown instead. */
export type SeenKeys = { readonly expected: string; readonly seen: string };

export type LinkOptions = {
  /** ws://, wss://, http:// or https://; the link adds the path. */
  readonly url: string;
  /**
   * Other brokers of the same store, used while the first cannot be reached. The brokers themselves may announce more.
   */
  readonly brokers?: readonly string[];
  readonly identity: MemberIdentity;
  readonly kind: ConnectionKind;
  /** Program and version, for the broker's log. */
  readonly agent: string;
  /** Absent: the first proven key is trusted for as long as the link lives. */
  readonly trust?: BrokerTrust;
  readonly onStatus: (status: LinkStatus) => void;
  /** Called in the order of arrival. */
  readonly onPush: (push: PushFrame) => void;
  readonly backoff?: { readonly minMs: number; readonly maxMs: number };
  readonly connectTimeoutMs?: number;
  /** In [0, 1). */
  readonly random?: () => number;
};

export type RequestOptions = {
  readonly timeoutMs: number;
  /** Called at most once, if the answer comes after the time-out while the connection is still up. */
  readonly onLateAnswer?: (answer: { readonly status: number; readonly body: unknown }) => void;
};

export type Link = {
  readonly status: () => LinkStatus;
  /** Never rejects: every end is an outcome. Frames leave in the order of the calls. */
  readonly request: (operation: OperationName, input: object, options: RequestOptions) => Promise<LinkOutcome>;
  /** Bytes accepted by `request` that the socket has not written yet. */
  readonly bufferedBytes: () => number;
  /** The present broker and the alternatives; absent where a link has only one address. */
  readonly route?: () => LinkRoute;
  /** Tries again now, where the link is waiting for its next try. */
  readonly reconnect?: () => void;
  /** Ends the link for good; open requests end as connection_lost. */
  readonly close: () => Promise<void>;
};

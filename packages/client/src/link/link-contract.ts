// What a link to a broker promises to the daemon and the SDK that hold it: one authenticated socket, requests with
// answers, pushes, reconnection. How it is kept up lives in link.ts; what is asked over it in the protocol's operations.
import type { NegotiatedFeatures, NegotiationFailure } from "@claudemesh/protocol/features";
import type { HelloReplyBody, PushFrame } from "@claudemesh/protocol/wire/frames";
import type { OperationName } from "@claudemesh/protocol/wire/operations";
import type { ConnectionKind } from "@claudemesh/protocol/wire/signing";
import type { SealingIdentity } from "../seal/outgoing.ts";
import type { LinkRoute } from "./broker-route.ts";
import type { BrokerTrust } from "./broker-trust.ts";

/** Who connects. `sign` makes an ed25519 signature of 64 bytes. */
export type MemberIdentity = SealingIdentity & {
  readonly meshId: string;
  readonly publicKey: string;
  readonly sign: (bytes: Uint8Array) => Uint8Array;
};

/**
 * How a request ended. `not_sent`: no byte of it left this host. `timed_out` and `connection_lost`: it may have been
 * carried out, nobody knows.
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
      /** What the broker has proven to hold. */
      readonly brokerKey: string;
      /** No key was known until now, and this one is trusted from here on. */
      readonly isFirstKey?: boolean;
      /** What the broker announced and nobody understood, where it is optional: said once, for a log. */
      readonly defaulted?: readonly string[];
    }
  /**
   * Down, and being tried again with backoff. `unauthorized`: the broker refuses this member; `member_revoked`: and says
   * that its membership has ended. `not_our_broker`: what
   * answers there has not proven to hold our broker's key, and nothing that it says counts. `broker_too_old`: it speaks
   * first, as brokers did that could not prove anything.
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
      /** Where the keys are what differs. */
      readonly keys?: SeenKeys;
    }
  /** Down for good: reconnecting by itself would be wrong. */
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
      /** What the broker announced, where negotiation is what failed. */
      readonly negotiation?: { readonly failure: NegotiationFailure; readonly announced: unknown };
    };

/** The key that was expected, and the one that the other side has shown instead. */
export type SeenKeys = { readonly expected: string; readonly seen: string };

export type LinkOptions = {
  /** ws://, wss://, http:// or https://; the path is ours. */
  readonly url: string;
  /** Other brokers of the same store, to go to while that one is away. The brokers themselves may tell of more. */
  readonly brokers?: readonly string[];
  readonly identity: MemberIdentity;
  readonly kind: ConnectionKind;
  /** Program and version, for the broker's log. */
  readonly agent: string;
  /** Absent: the first key that is proven is believed for as long as the link lives. */
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
  /** Called if the answer comes after the time-out, while the connection still stands. At most once. */
  readonly onLateAnswer?: (answer: { readonly status: number; readonly body: unknown }) => void;
};

export type Link = {
  readonly status: () => LinkStatus;
  /** Never rejects: every end is an outcome. Frames leave in the order of the calls. */
  readonly request: (operation: OperationName, input: object, options: RequestOptions) => Promise<LinkOutcome>;
  /** Bytes accepted by `request` that the socket has not taken yet. */
  readonly bufferedBytes: () => number;
  /** Where it is and could be; absent where a link has one place for good. */
  readonly route?: () => LinkRoute;
  /** Tries again now, where it waits for its next try. */
  readonly reconnect?: () => void;
  /** Ends the link for good; open requests end as connection_lost. */
  readonly close: () => Promise<void>;
};

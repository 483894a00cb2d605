// What a replica needs of a connection to a broker: requests with answers, pushes in order, and word of when it comes
// and goes. The bindings to a link and to a browser's socket are in wires/.
import type { OperationName } from "@claudemesh/protocol/wire/operations";

/** The frame types of spaces. */
export type SpaceRequestType = Extract<OperationName, `space.${string}`>;

/** `not_sent`: no byte of it left this host. `timed_out` and `connection_lost`: it may have been carried out. */
export type WireOutcome =
  | { readonly type: "answered"; readonly status: number; readonly body: unknown }
  | { readonly type: "timed_out" }
  | { readonly type: "connection_lost" }
  | { readonly type: "not_sent" };

export type SigningOption = {
  /** Puts the member's signature under every commit, and under the making and deletion of branches. */
  readonly signWrites?: boolean;
};

export type WireEvents = {
  /** Every push of the connection, whatever its type, in the order of arrival. */
  readonly onPush: (push: { readonly type: string }) => void;
  readonly onUp: () => void;
  /** `stopped` says why when it never comes back by itself. */
  readonly onDown: (stopped?: string) => void;
};

export type SpaceWire = {
  readonly isUp: () => boolean;
  /** Never rejects. Requests leave in the order of the calls; a push that came before a reply is handed over before it. */
  readonly request: (type: SpaceRequestType, input: object) => Promise<WireOutcome>;
  /** Returns the way to stop listening. */
  readonly listen: (events: WireEvents) => () => void;
  readonly close: () => Promise<void>;
};

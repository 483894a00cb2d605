// What a replica needs of a connection to a broker: requests with answers, pushes in order, and events when it goes up
// and down. The implementations over a link and over a browser's socket are in wires/.
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
  /** Signs every commit, and every creation and deletion of a branch, with the member's key. */
  readonly signWrites?: boolean;
};

export type WireEvents = {
  /** Every push of the connection, whatever its type, in the order of arrival. */
  readonly onPush: (push: { readonly type: string }) => void;
  readonly onUp: () => void;
  /** `stopped` says why, where the connection never comes back by itself. */
  readonly onDown: (stopped?: string) => void;
};

export type SpaceWire = {
  readonly isUp: () => boolean;
  /**
   * Never rejects. Requests leave in the order of the calls; a push that came before a reply is delivered before it.
   */
  readonly request: (type: SpaceRequestType, input: object) => Promise<WireOutcome>;
  /** Returns the function that stops listening. */
  readonly listen: (events: WireEvents) => () => void;
  readonly close: () => Promise<void>;
};

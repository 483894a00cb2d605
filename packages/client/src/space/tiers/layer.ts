// One optimistic commit of this session: what it does, what it rests on, and the request that is sent for it, always
// the same.
import type { BranchId } from "@claudemesh/protocol/spaces/entity";
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import type { SpaceRequestType } from "../space-wire.ts";

/** The request without the session's id and token, which change while the payload must not. */
export type LayerRequest = { readonly type: SpaceRequestType; readonly input: object };

export type Layer = {
  readonly localSeq: number;
  readonly branch: BranchId;
  readonly operations: readonly Operation[];
  /** The layers that its reads name. */
  readonly restsOn: ReadonlySet<number>;
  readonly request: LayerRequest;
  /** Its verdict may have to wait for a limiter, so that a later request could overtake it. */
  readonly hasSends: boolean;
  /** Set once it is accepted. The layer stays in the stack until confirmed state has reached this seq. */
  acceptedSeq?: number;
  /** The layer is known to be rejected: nothing new is built on it. */
  isDoomed?: boolean;
  /**
   * Accepted in a session that is over: its number has no meaning in the next one, so nothing new is built on it
   * either.
   */
  isDisowned?: boolean;
};

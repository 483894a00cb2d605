// One optimistic commit of this session: what it does, what it rests on, and exactly what is sent for it, each time.
import type { BranchId } from "@claudemesh/protocol/spaces/entity";
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import type { SpaceRequestType } from "../space-wire.ts";

/** What is sent, but for the session's id and token, which change while the payload must not. */
export type LayerRequest = { readonly type: SpaceRequestType; readonly input: object };

export type Layer = {
  readonly localSeq: number;
  readonly branch: BranchId;
  readonly operations: readonly Operation[];
  /** The layers that its reads name. */
  readonly restsOn: ReadonlySet<number>;
  readonly request: LayerRequest;
  /** Its verdict may need a limiter, so that what is sent behind it could overtake it. */
  readonly hasSends: boolean;
  /** Once it is accepted. It stays in the stack until confirmed state has reached this seq. */
  acceptedSeq?: number;
  /** It is known that it will be taken back: nothing new is built on it. */
  isDoomed?: boolean;
  /** Accepted in a session that is over: its number means nothing in the next, so nothing new is built on it either. */
  isDisowned?: boolean;
};

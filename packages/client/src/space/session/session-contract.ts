// What the state of a session asks of its surroundings: effects, in the order in which they are to be carried out. Only
// replica.ts carries them out.
import type { SpaceError } from "../space-errors.ts";
import type { SpaceRequestType } from "../space-wire.ts";
import type { Notification } from "../tiers/visible-changes.ts";
import type { Settlement } from "./integration.ts";
import type { QueryPart } from "./watch-set.ts";

/**
 * What a request was for, so that its answer can be assigned. `connection` tells answers of an ended connection apart.
 */
export type Ask = { readonly connection: number } & (
  | { readonly kind: "open" }
  | { readonly kind: "commit"; readonly localSeq: number }
  | { readonly kind: "watch"; readonly branch: string; readonly round: number; readonly part?: QueryPart }
);

export type Effect =
  | { readonly kind: "send"; readonly type: SpaceRequestType; readonly input: object; readonly ask: Ask }
  | { readonly kind: "notify"; readonly notification: Notification }
  | { readonly kind: "settle"; readonly settlement: Settlement }
  /** Call `woken` after the backoff for this many failures in a row. */
  | { readonly kind: "wake"; readonly failures: number; readonly ask: Ask }
  | { readonly kind: "opened" }
  /** The session is over; its pending work has been settled before. */
  | { readonly kind: "lost"; readonly error: SpaceError }
  | { readonly kind: "load_failed"; readonly branch: string; readonly error: SpaceError };

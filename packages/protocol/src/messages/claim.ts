// The decision that carries the whole product: a claim is (scope, key) → fingerprint, result, written in the same
// transaction as its effect. What differs between callers is the effect, never this function.
import { sameFingerprint } from "./fingerprint.ts";

export type StoredClaim = {
  readonly fingerprint: Uint8Array;
  /** Who made the claim, where a scope is shared by several owners. */
  readonly owner?: string;
};

export type ClaimDecision = "first" | "same" | "different" | "owned_by_another";

/** First time: do it. Same again: the stored result. Anything else: a conflict, and nothing changes. */
export function decideClaim(stored: StoredClaim | undefined, offered: StoredClaim): ClaimDecision {
  if (stored === undefined) return "first";
  if (stored.owner !== offered.owner) return "owned_by_another";
  return sameFingerprint(stored.fingerprint, offered.fingerprint) ? "same" : "different";
}

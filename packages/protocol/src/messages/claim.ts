// The decision on which the whole product rests: a claim is (scope, key) → fingerprint, result, written in the same
// transaction as its effect. Callers differ in the effect, never in this function.
import { sameFingerprint } from "./fingerprint.ts";

export type StoredClaim = {
  readonly fingerprint: Uint8Array;
  /** The owner of the claim, where several owners share a scope. */
  readonly owner?: string;
};

export type ClaimDecision = "first" | "same" | "different" | "owned_by_another";

/**
 * The first time: run the effect. The same again: give the stored result. Anything else: a conflict, and nothing
 * changes.
 */
export function decideClaim(stored: StoredClaim | undefined, offered: StoredClaim): ClaimDecision {
  if (stored === undefined) return "first";
  if (stored.owner !== offered.owner) return "owned_by_another";
  return sameFingerprint(stored.fingerprint, offered.fingerprint) ? "same" : "different";
}

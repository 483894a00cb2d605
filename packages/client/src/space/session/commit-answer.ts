// What the answer to a commit means: decided for good, to be sent again, or the end of the session.
import type { EncodedCommit } from "@claudemesh/protocol/spaces/commit";
import { refusalFrom, type SpaceError } from "../space-errors.ts";
import type { WireOutcome } from "../space-wire.ts";
import { isSeq } from "../sync-frame.ts";
import type { Verdict } from "./integration.ts";

export type CommitAnswer =
  | { readonly kind: "decided"; readonly verdict: Verdict }
  /** Nothing is decided, or the outcome is unknown: the same payload is sent again. */
  | { readonly kind: "again" }
  | { readonly kind: "lost"; readonly error: SpaceError };

/** The session belongs to another holder, or the broker has forgotten it. */
const lostCodes: readonly string[] = ["session_revoked_error", "session_not_found"];

export function isLost({ code }: SpaceError): boolean {
  return lostCodes.includes(code);
}

export function readCommitAnswer(outcome: WireOutcome, commit: EncodedCommit | undefined): CommitAnswer {
  if (outcome.type !== "answered") return { kind: "again" };
  const { status, body } = outcome;
  if (status >= 200 && status <= 299) return readAccepted(body);
  const error = refusalFrom(status, body, commit);
  if (isLost(error)) return { kind: "lost", error };
  if (error.retryable) return { kind: "again" };
  return { kind: "decided", verdict: { type: "rejected", error } };
}

function readAccepted(body: unknown): CommitAnswer {
  const { seq, resolvedPendingReads, replayed } = (body ?? {}) as Record<string, unknown>;
  // An unreadable answer may mean that the commit was accepted; sending it again is safe.
  if (!isSeq(seq)) return { kind: "again" };
  const resolved = Array.isArray(resolvedPendingReads) ? resolvedPendingReads : [];
  return {
    kind: "decided",
    verdict: { type: "accepted", seq, resolvedPendingReads: resolved, replayed: replayed === true },
  };
}

/** Rejections after which the same transaction, built again on the present state, may be accepted. */
const rebuildableCodes: readonly string[] = ["conflict_error", "dependency_rejected_error", "local_seq_passed_error"];

export function isRebuildable({ code }: SpaceError): boolean {
  return rebuildableCodes.includes(code);
}

// What becomes of (session, localSeq): the verdict, its text in the store, and the decision when it comes again. Pure.
import assert from "node:assert/strict";
import { type ErrorCode, MeshError } from "@claudemesh/protocol/errors";
import { parseOwnJsonText, writeStrictJson } from "@claudemesh/protocol/json";
import { decideClaim } from "@claudemesh/protocol/messages/claim";
import type { VerdictRow } from "../ports/rows.ts";

export type ResolvedPendingRead = { readonly localSeq: number; readonly seq: number };

export type Verdict =
  | {
      readonly type: "accepted";
      readonly seq: number;
      readonly resolvedPendingReads: readonly ResolvedPendingRead[];
      readonly replayed: boolean;
    }
  | { readonly type: "rejected"; readonly error: MeshError; readonly replayed: boolean };

/** Rejections that are kept for ever. Every other error consumes nothing. */
const rejectionCodes: readonly ErrorCode[] = [
  "conflict_error",
  "dependency_rejected_error",
  "send_rejected_error",
  "patch_error",
];

export type Claimed =
  | { readonly type: "first" }
  | { readonly type: "answered"; readonly verdict: Verdict }
  | { readonly type: "refused"; readonly code: "replay_mismatch_error" | "local_seq_passed_error" };

/** SPC-1: an exact retry gets the stored verdict, anything else under its key is refused, and nothing overtakes. */
export function decideReplay(
  stored: VerdictRow | undefined,
  fingerprint: Uint8Array,
  localSeq: number,
  lastLocalSeq: number,
): Claimed {
  const claim = decideClaim(stored && { fingerprint: stored.fingerprint }, { fingerprint });
  if (stored !== undefined) {
    if (claim !== "same") return { type: "refused", code: "replay_mismatch_error" };
    return { type: "answered", verdict: readVerdict(stored) };
  }
  return localSeq > lastLocalSeq ? { type: "first" } : { type: "refused", code: "local_seq_passed_error" };
}

export function writeAcceptedResult(resolved: readonly ResolvedPendingRead[]): string {
  return JSON.stringify({ resolvedPendingReads: resolved });
}

export function writeRejectedResult(error: MeshError): string {
  assert(rejectionCodes.includes(error.code), `${error.code} is no verdict`);
  return writeStrictJson({ code: error.code, message: error.message, details: error.details });
}

/** As a retry gets it. */
export function readVerdict(row: VerdictRow): Verdict {
  const result = parseOwnJsonText(row.result) as Record<string, unknown>;
  if (row.seq !== undefined) {
    const resolvedPendingReads = result.resolvedPendingReads as ResolvedPendingRead[];
    return { type: "accepted", seq: row.seq, resolvedPendingReads, replayed: true };
  }
  const code = result.code as ErrorCode;
  const details = result.details as Record<string, unknown>;
  return { type: "rejected", error: new MeshError(code, String(result.message), details), replayed: true };
}

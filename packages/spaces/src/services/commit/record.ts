// What a decided write leaves in the store: the verdict of a rejection, or everything that an accepted one brings.
import { hash } from "node:crypto";
import type { MeshError } from "@claudemesh/protocol/errors";
import type { VerifiedInvocation } from "../../core/invocation.ts";
import {
  type ResolvedPendingRead,
  type Verdict,
  writeAcceptedResult,
  writeRejectedResult,
} from "../../core/verdict.ts";
import type { Flow } from "../../ports/flow.ts";
import type { VerdictRow } from "../../ports/rows.ts";
import type { AcceptedWrites, SpaceTransaction } from "../../ports.ts";
import type { Writer } from "./replay.ts";

export function fingerprintOf(payload: string): Uint8Array {
  return hash("sha256", payload, "buffer");
}

/** SPC-5: a rejection is as durable as an acceptance, and moves the session on. */
export function* reject(tx: SpaceTransaction, writer: Writer, branch: string, error: MeshError): Flow<Verdict> {
  yield* tx.writeRejected(verdictRow(writer, branch, undefined, writeRejectedResult(error)));
  return { type: "rejected", error, replayed: false };
}

export type Accepted = Omit<AcceptedWrites, "commit" | "verdict"> & {
  readonly seq: number;
  readonly branch: string;
  readonly original: string;
  readonly resolved: readonly ResolvedPendingRead[];
  readonly invocationRef: string | undefined;
  readonly authorizationRef: string | undefined;
};

export const nothingWritten = {
  revisions: [],
  heads: [],
  snapshots: [],
  invocations: [],
  merge: undefined,
  createdBranch: undefined,
  deletedBranch: undefined,
  resolved: [],
  changes: [],
  invocationRef: undefined,
  authorizationRef: undefined,
} as const satisfies Partial<Accepted>;

/** What a write leaves of its signature. */
export function signedRows(signed: VerifiedInvocation | undefined) {
  return {
    invocations: signed === undefined ? [] : [signed.invocation, signed.authorization],
    invocationRef: signed?.invocation.hash,
    authorizationRef: signed?.authorization.hash,
  };
}

export function* record(tx: SpaceTransaction, writer: Writer, accepted: Accepted): Flow<Verdict> {
  const { seq, branch, original, resolved, invocationRef, authorizationRef, ...rows } = accepted;
  yield* tx.writeAccepted({
    ...rows,
    verdict: verdictRow(writer, branch, seq, writeAcceptedResult(resolved)),
    commit: {
      seq,
      branch,
      sessionId: writer.sessionId,
      localSeq: writer.localSeq,
      memberPubkey: writer.memberPubkey,
      original,
      resolution: JSON.stringify({ seq, ...(resolved.length > 0 && { resolvedPendingReads: resolved }) }),
      invocationRef,
      authorizationRef,
      committedAtMs: writer.nowMs,
    },
  });
  return { type: "accepted", seq, resolvedPendingReads: resolved, replayed: false };
}

function verdictRow(writer: Writer, branch: string, seq: number | undefined, result: string): VerdictRow {
  return {
    sessionId: writer.sessionId,
    localSeq: writer.localSeq,
    memberPubkey: writer.memberPubkey,
    fingerprint: writer.fingerprint,
    branch,
    seq,
    result,
    decidedAtMs: writer.nowMs,
  };
}

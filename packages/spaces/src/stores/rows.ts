// Rows of a space as both stores read them, and what they become. Statements are each store's own, and times are as the
// store's driver gives them.
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import type {
  Branch,
  CommitRow,
  RevisionRow,
  Segment,
  SessionRow,
  SignedWrites,
  SpaceRow,
  VerdictRow,
} from "../ports/rows.ts";

type StoredTime = Date | number;

export type SpaceColumns = {
  space_id: string;
  signed_writes: SignedWrites;
  last_seq: number;
  created_by: string;
  created_at: StoredTime;
};

export const spaceColumns = "space_id, signed_writes, last_seq, created_by, created_at";

export function toSpace(row: SpaceColumns): SpaceRow {
  return {
    spaceId: row.space_id,
    signedWrites: row.signed_writes,
    lastSeq: row.last_seq,
    createdBy: row.created_by,
    createdAtMs: Number(row.created_at),
  };
}

export type SessionColumns = {
  member_pubkey: string;
  epoch: number;
  token_hash: Uint8Array;
  last_local_seq: number;
  used_at: StoredTime;
};

export const sessionColumns = "member_pubkey, epoch, token_hash, last_local_seq, used_at";

export function toSession(sessionId: string, row: SessionColumns): SessionRow {
  return {
    sessionId,
    memberPubkey: row.member_pubkey,
    epoch: row.epoch,
    tokenHash: row.token_hash,
    lastLocalSeq: row.last_local_seq,
    usedAtMs: Number(row.used_at),
  };
}

export type VerdictColumns = {
  local_seq: number;
  member_pubkey: string;
  fingerprint: Uint8Array;
  branch: string;
  seq: number | null;
  result: string;
  decided_at: StoredTime;
};

export const verdictColumns = "local_seq, member_pubkey, fingerprint, branch, seq, result, decided_at";

export function toVerdict(sessionId: string, row: VerdictColumns): VerdictRow {
  return {
    sessionId,
    localSeq: row.local_seq,
    memberPubkey: row.member_pubkey,
    fingerprint: row.fingerprint,
    branch: row.branch,
    seq: row.seq ?? undefined,
    result: row.result,
    decidedAtMs: Number(row.decided_at),
  };
}

export type CommitColumns = {
  seq: number;
  branch: string;
  session_id: string;
  local_seq: number;
  member_pubkey: string;
  original: string;
  resolution: string;
  invocation_ref: string | null;
  authorization_ref: string | null;
  committed_at: StoredTime;
};

export const commitColumns = `seq, branch, session_id, local_seq, member_pubkey, original, resolution, invocation_ref,
  authorization_ref, committed_at`;

export function toCommit(row: CommitColumns): CommitRow {
  return {
    seq: row.seq,
    branch: row.branch,
    sessionId: row.session_id,
    localSeq: row.local_seq,
    memberPubkey: row.member_pubkey,
    original: row.original,
    resolution: row.resolution,
    invocationRef: row.invocation_ref ?? undefined,
    authorizationRef: row.authorization_ref ?? undefined,
    committedAtMs: Number(row.committed_at),
  };
}

export type BranchColumns = { name: string; lineage: string; created_seq: number; deleted_seq: number | null };

export const branchColumns = "name, lineage, created_seq, deleted_seq";

export function toBranch(row: BranchColumns): Branch {
  return {
    name: row.name,
    lineage: parseOwnJsonText(row.lineage) as Segment[],
    createdSeq: row.created_seq,
    deletedSeq: row.deleted_seq ?? undefined,
  };
}

export type RevisionColumns = { seq: number; op_index: number; op: RevisionRow["op"]; body: string | null };

export function toRevision({ seq, op_index: opIndex, op, body }: RevisionColumns) {
  return { seq, opIndex, op, body: body ?? undefined };
}

/** Two branches as one key, whichever of them is named first. */
export function branchPair(a: string, b: string): readonly [string, string] {
  return a < b ? [a, b] : [b, a];
}

// The registrar's records as the rules see them. How they are stored is each store's; when they may be written is decided
// in phase-one.ts and compensation.ts.
import type { ApprovalSignatureVersion, ApprovalTerms } from "@claudemesh/protocol/registrar/approval";
import type { Effect } from "@claudemesh/protocol/registrar/digests";
import type { VerifiedState } from "@claudemesh/protocol/registrar/registration-state";

export type Approval = {
  readonly terms: ApprovalTerms;
  readonly ownerPubkey: string;
  readonly signature: string;
  readonly signatureVersion: ApprovalSignatureVersion;
  readonly nonceHash: Uint8Array;
  readonly approvedAtMs: number;
  readonly revokedAtMs: number | undefined;
};

/** An approval with what became of its nonce. */
export type ApprovalRecord = Approval & { readonly spent: boolean };

export type Registration = Effect & {
  readonly registrationId: string;
  readonly logicalRequestKey: string;
  readonly binding: string;
  readonly registeredBy: string;
  readonly registeredAtMs: number;
};

/** The single-use record. The effect that it names is the registration's, by the digests of both. */
export type Consumption = {
  readonly protocolVersion: string;
  readonly replayKey: Uint8Array;
  readonly effectKey: Uint8Array;
  readonly binding: string;
  readonly approvalId: string;
  readonly attemptId: string;
  readonly consumedAtMs: number;
};

export type Verification = {
  readonly state: VerifiedState;
  readonly verifier: string;
  readonly reasons: readonly string[];
  readonly verifiedAtMs: number;
};

export type Compensation = {
  readonly approvalId: string;
  readonly attemptId: string;
  readonly compensatedBy: string;
  readonly compensatedAtMs: number;
};

/** Everything that stands under one consumed key. */
export type StoredRequest = {
  readonly registration: Registration;
  readonly consumption: Consumption;
  readonly verification: Verification | undefined;
  readonly compensation: Compensation | undefined;
};

export type AuditEntry = {
  readonly auditId: string;
  readonly memberPubkey: string;
  readonly atMs: number;
} & (
  | {
      readonly kind: "refusal";
      readonly code: string;
      readonly conflict: string | undefined;
      readonly logicalRequestKey: string | undefined;
      readonly approvalId: string | undefined;
      readonly attemptId: string | undefined;
    }
  /** Refusals of a window that were not written one by one. */
  | { readonly kind: "summary"; readonly suppressed: number }
);

export type Refusal = Omit<Extract<AuditEntry, { kind: "refusal" }>, "kind" | "atMs">;

/** How often one attempt came back after the key was consumed. */
export type Retry = {
  readonly meshId: string;
  readonly logicalRequestKey: string;
  readonly attemptId: string;
  readonly memberPubkey: string;
  readonly tries: number;
  readonly atMs: number;
};

export type RecordedAttempt = {
  /** Undefined for the attempts beyond those that are kept by name, which are counted together. */
  readonly attemptId: string | undefined;
  readonly memberPubkey: string;
  readonly tries: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
};

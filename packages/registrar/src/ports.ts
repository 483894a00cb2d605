// What the registrar's services need from a store, each with its guarantee. Whatever changes something is one
// transaction, durable when it resolves. Records are only ever appended; the one exception is an approval's revocation.
import type { CompensationDecision, CompensationRequest } from "./core/compensation.ts";
import type { RegistrationRequest, RequestDecision } from "./core/phase-one.ts";
import type {
  Approval,
  ApprovalRecord,
  AuditEntry,
  RecordedAttempt,
  Refusal,
  Retry,
  StoredRequest,
  Verification,
} from "./core/records.ts";
import type { SurfaceFacts } from "./core/surface.ts";

export type AddedApproval =
  | { readonly type: "added" }
  /** An approval with this id exists, the same or another. Nothing was written. */
  | { readonly type: "stored"; readonly approval: ApprovalRecord };

export type ApprovalStore = {
  readonly add: (meshId: string, approval: Approval) => Promise<AddedApproval>;
  readonly find: (meshId: string, approvalId: string) => Promise<ApprovalRecord | undefined>;
  /** In order of their ids. */
  readonly list: (meshId: string, after: string, limit: number) => Promise<readonly ApprovalRecord[]>;
  /** The approval as it is then, revoked now or before; undefined: there is none. Waits for a request that uses it. */
  readonly revoke: (meshId: string, approvalId: string, nowMs: number) => Promise<ApprovalRecord | undefined>;
};

export type RequestStore = {
  /** Everything under a key, each part from the table that it is recorded in. */
  readonly find: (meshId: string, logicalRequestKey: string) => Promise<StoredRequest | undefined>;
  /** The same for a retry, with as little reading as can be: the consume row repeats the registration it was written with. */
  readonly findConsumed: (meshId: string, logicalRequestKey: string) => Promise<StoredRequest | undefined>;
  /**
   * Phase 1: everything is read, decided and written in one transaction. After `consume` the consume row, with it the
   * spent nonce, and the inert registration are durable together; after any other decision nothing was written.
   */
  readonly consume: (request: RegistrationRequest, nowMs: number) => Promise<RequestDecision>;
  /** The same for a compensation. */
  readonly compensate: (request: CompensationRequest, nowMs: number) => Promise<CompensationDecision>;
  /** Appends a verdict unless one is there. Returns the one that stands. */
  readonly verify: (meshId: string, logicalRequestKey: string, verification: Verification) => Promise<Verification>;
  /** In order of registration. */
  readonly list: (meshId: string, after: string, limit: number) => Promise<readonly StoredRequest[]>;
  /** Keys of registrations that failed their verification and were not made good. */
  readonly failed: (meshId: string, limit: number) => Promise<readonly string[]>;
  /** Registered at or after `sinceId`, without a verdict; goes on behind `after`, in order of mesh and registration. */
  readonly unverified: (
    sinceId: string,
    after: UnverifiedRequest | undefined,
    limit: number,
  ) => Promise<readonly UnverifiedRequest[]>;
};

export type UnverifiedRequest = {
  readonly meshId: string;
  readonly registrationId: string;
  readonly logicalRequestKey: string;
};

export type AuditStore = {
  /** Writes the refusal, or counts it where its member's window is full. `nextId` names a summary of the window before. */
  readonly refuse: (meshId: string, refusal: Refusal, nowMs: number, nextId: () => string) => Promise<void>;
  /** Appends the summaries of windows that are over; returns how many. */
  readonly summarise: (nowMs: number, limit: number, nextId: () => string) => Promise<number>;
  /** In order of their ids. */
  readonly list: (meshId: string, after: string, limit: number) => Promise<readonly AuditEntry[]>;
};

export type AttemptStore = {
  readonly count: (retries: readonly Retry[]) => Promise<void>;
  readonly list: (meshId: string, logicalRequestKey: string) => Promise<readonly RecordedAttempt[]>;
};

export type RegistrarStore = {
  readonly approvals: ApprovalStore;
  readonly requests: RequestStore;
  readonly audit: AuditStore;
  readonly attempts: AttemptStore;
  /** What the live schema has, looked at now. */
  readonly inspect: () => Promise<SurfaceFacts>;
};

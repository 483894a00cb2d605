// Every refusal of the registrar is written down, after and outside of the transaction that decided it. A refusal whose
// audit cannot be written is answered with that failure instead: nothing was consumed, and asking again is safe.
import type { PlainMember } from "@claudemesh/members/ports";
import { MeshError } from "@claudemesh/protocol/errors";
import type { AuditStore } from "../ports.ts";

export type AuditPorts = {
  readonly store: Pick<AuditStore, "refuse">;
  readonly nowMs: () => number;
  readonly nextId: () => string;
};

export type AuditedRequest = {
  readonly logical_request_key?: string;
  readonly approval_id?: string;
  readonly attempt_id?: string;
};

/** What cannot be understood, and what we failed at ourselves, is no refusal of the registrar. */
function isRefusal(error: unknown): error is MeshError {
  return error instanceof MeshError && error.status > 400 && error.status < 500;
}

export async function auditRefusals<T>(
  ports: AuditPorts,
  member: PlainMember,
  request: AuditedRequest,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const { conflict } = error.details;
    const refusal = {
      auditId: ports.nextId(),
      memberPubkey: member.pubkey,
      code: error.code,
      conflict: typeof conflict === "string" ? conflict : undefined,
      logicalRequestKey: request.logical_request_key,
      approvalId: request.approval_id,
      attemptId: request.attempt_id,
    };
    await ports.store.refuse(member.meshId, refusal, ports.nowMs(), ports.nextId);
    throw error;
  }
}

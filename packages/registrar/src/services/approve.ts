// An owner's approval: signed terms, and one nonce that is shown once, to the owner who made the approval. The id is the
// owner's to choose, so that the same call again finds what it made.

import { hashSecret, mintSecret } from "@claudemesh/members/credentials";
import type { Member } from "@claudemesh/members/ports";
import { requireOwner } from "@claudemesh/members/require-owner";
import { canonicalJson } from "@claudemesh/protocol/canonical";
import { MeshError } from "@claudemesh/protocol/errors";
import { type ApprovalTerms, approvalBytes } from "@claudemesh/protocol/registrar/approval";
import { checkRegistrarText } from "@claudemesh/protocol/registrar/registrar-text";
import type { ApproveInput } from "@claudemesh/protocol/wire/registrar-operations";
import type { Approval, ApprovalRecord } from "../core/records.ts";
import type { AddedApproval, ApprovalStore } from "../ports.ts";
import type { SignatureCheck } from "./signature-check.ts";

export type RevokePorts = { readonly store: Pick<ApprovalStore, "revoke">; readonly nowMs: () => number };

export type ApprovePorts = {
  readonly store: Pick<ApprovalStore, "add" | "find">;
  readonly nowMs: () => number;
  readonly isSignedBy: SignatureCheck;
  /** Rejects with the refusal of one more approval. */
  readonly admit: () => Promise<void>;
  /** For the nonce; Node's own unless given. */
  readonly randomBytes?: (length: number) => Uint8Array;
};

export type Approved =
  | { readonly type: "approved"; readonly terms: ApprovalTerms; readonly authorizationNonce: string }
  /** It was approved before. The registrar does not know its nonce, only a hash. */
  | { readonly type: "exists"; readonly approval: ApprovalRecord };

export async function approve(ports: ApprovePorts, owner: Member, input: ApproveInput): Promise<Approved> {
  requireOwner(owner, "approve a registration");
  const { signature, ...given } = input;
  const terms: ApprovalTerms = given;
  checkTerms(terms);
  if (!(await ports.isSignedBy(owner.pubkey, approvalBytes(owner.meshId, terms), signature))) {
    const message =
      "The signature is not this owner's over claudemesh-approval-1, 0x00 and the canonical JSON of the other fields with mesh_id.";
    throw new MeshError("forbidden", message, { field: "signature" });
  }
  const authorizationNonce = mintSecret("cmn", ports.randomBytes);
  const outcome = await addOrFind(ports, owner, {
    terms,
    ownerPubkey: owner.pubkey,
    signature,
    signatureVersion: 2,
    nonceHash: hashSecret(authorizationNonce),
    approvedAtMs: ports.nowMs(),
    revokedAtMs: undefined,
  });
  if (outcome.type === "added") return { type: "approved", terms, authorizationNonce };
  const { approval } = outcome;
  if (approval.ownerPubkey !== owner.pubkey || textOf(approval.terms) !== textOf(terms)) {
    const message = "An approval with this id exists with other terms or of another owner; choose a new approval_id.";
    throw new MeshError("exists_with_other_content", message, { approval_id: terms.approval_id });
  }
  return { type: "exists", approval };
}

/** An approval that is stored already is found by one read, and needs no admission. */
async function addOrFind(
  { store, admit }: ApprovePorts,
  { meshId }: Member,
  approval: Approval,
): Promise<AddedApproval> {
  const { approval_id } = approval.terms;
  const stored = await store.find(meshId, approval_id);
  if (stored !== undefined) return { type: "stored", approval: stored };
  await admit();
  return store.add(meshId, approval);
}

function checkTerms(terms: ApprovalTerms): void {
  const { approval_id, operation, target, run_id, logical_request_key, purpose } = terms;
  checkRegistrarText({ approval_id, operation, target, run_id, logical_request_key });
  if (terms.not_before >= terms.not_after) {
    throw new MeshError("invalid_request", "not_after must be later than not_before.", { field: "not_after" });
  }
  if ((purpose === "compensate") !== (logical_request_key !== undefined)) {
    const message = "logical_request_key goes with the purpose compensate, and is needed there.";
    throw new MeshError("invalid_request", message, { field: "logical_request_key" });
  }
}

const textOf = (terms: ApprovalTerms) => canonicalJson({ ...terms });

/** The same again is fine; a nonce that was spent stays spent. */
export async function revokeApproval(ports: RevokePorts, owner: Member, approvalId: string): Promise<ApprovalRecord> {
  requireOwner(owner, "revoke an approval");
  const approval = await ports.store.revoke(owner.meshId, approvalId, ports.nowMs());
  if (approval === undefined) throw new MeshError("not_found", "There is no approval with this id.");
  return approval;
}

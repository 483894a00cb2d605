// An owner's approval: signed terms, and one nonce that is shown to whoever made the approval, once. The id is the
// owner's to choose, so that the same call again finds what it made.
import { hashSecret, mintSecret } from "@claudemesh/members/credentials";
import type { Member } from "@claudemesh/members/ports";
import { canonicalJson } from "@claudemesh/protocol/canonical";
import { MeshError } from "@claudemesh/protocol/errors";
import { type ApprovalTerms, approvalBytes } from "@claudemesh/protocol/registrar/approval";
import { checkRegistrarText } from "@claudemesh/protocol/registrar/registrar-text";
import type { ApproveInput } from "@claudemesh/protocol/wire/registrar-operations";
import type { ApprovalRecord } from "../core/records.ts";
import type { ApprovalStore } from "../ports.ts";
import type { SignatureCheck } from "./signature-check.ts";

export type RevokePorts = { readonly store: Pick<ApprovalStore, "revoke">; readonly nowMs: () => number };

export type ApprovePorts = {
  readonly store: Pick<ApprovalStore, "add">;
  readonly nowMs: () => number;
  readonly isSignedBy: SignatureCheck;
};

export type Approved =
  | { readonly type: "approved"; readonly terms: ApprovalTerms; readonly authorizationNonce: string }
  /** It was approved before; nobody here knows its nonce. */
  | { readonly type: "exists"; readonly approval: ApprovalRecord };

export async function approve(ports: ApprovePorts, owner: Member, input: ApproveInput): Promise<Approved> {
  requireOwner(owner, "approve a registration");
  const { signature, ...given } = input;
  const terms: ApprovalTerms = given;
  checkTerms(terms);
  if (!ports.isSignedBy(owner.pubkey, approvalBytes(terms), signature)) {
    const message = "The signature is not this owner's over the canonical JSON of the other fields.";
    throw new MeshError("forbidden", message, { field: "signature" });
  }
  const authorizationNonce = mintSecret("cmn");
  const outcome = await ports.store.add(owner.meshId, {
    terms,
    ownerPubkey: owner.pubkey,
    signature,
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

export function requireOwner(member: Member, what: string): void {
  if (member.role !== "owner") throw new MeshError("forbidden", `Only an owner may ${what}.`);
}

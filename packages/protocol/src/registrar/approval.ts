// What an owner signs: a label, and the canonical JSON of everything else in the request together with the mesh. So an
// approval cannot be used for another mesh, operation, target, artifact, run, window or purpose.
// Why: docs/decisions/0132.
import { canonicalJson } from "../canonical/canonical-json.ts";
import { encodeUtf8 } from "../encoding/utf8.ts";
import type { JsonObject } from "../json/strict-json.ts";

export const approvalPurposes = ["register", "compensate"] as const;
export type ApprovalPurpose = (typeof approvalPurposes)[number];

/** An approval as it is sent, without its signature. */
export type ApprovalTerms = {
  readonly approval_id: string;
  readonly operation: string;
  readonly target: string;
  readonly artifact_hash: string;
  readonly run_id: string;
  readonly purpose: ApprovalPurpose;
  /** Only with the purpose `compensate`: the request whose effect is compensated. */
  readonly logical_request_key?: string;
  readonly not_before: number;
  readonly not_after: number;
};

/** The label, 0x00, and the RFC 8785 bytes of the terms with `mesh_id`. An undefined field is left out. */
export function approvalBytes(meshId: string, terms: ApprovalTerms): Uint8Array {
  return encodeUtf8(`claudemesh-approval-1\0${canonicalTerms({ ...terms, mesh_id: meshId })}`);
}

/**
 * What the signature of a stored approval covers: 1, its terms alone, as in the first version; 2, the bytes of
 * approvalBytes.
 */
export const approvalSignatureVersions = [1, 2] as const;
export type ApprovalSignatureVersion = (typeof approvalSignatureVersions)[number];

/** For approvals that are stored. A new approval is only valid by approvalBytes. */
export function storedApprovalBytes(
  version: ApprovalSignatureVersion,
  meshId: string,
  terms: ApprovalTerms,
): Uint8Array {
  return version === 2 ? approvalBytes(meshId, terms) : encodeUtf8(canonicalTerms(terms));
}

function canonicalTerms(terms: ApprovalTerms & { readonly mesh_id?: string }): string {
  const present = Object.entries(terms).filter(([field, value]) => field !== "signature" && value !== undefined);
  return canonicalJson(Object.fromEntries(present) as JsonObject);
}

// What an owner signs: a label, and the canonical JSON of everything else in the request together with the mesh, so that an
// approval cannot be stretched to another mesh, operation, target, artifact, run, window or purpose.
// Why: docs/decisions/0132.
import { canonicalJson } from "../canonical/canonical-json.ts";
import { encodeUtf8 } from "../encoding/utf8.ts";
import type { JsonObject } from "../json/strict-json.ts";

export const approvalPurposes = ["register", "compensate"] as const;
export type ApprovalPurpose = (typeof approvalPurposes)[number];

/** An approval as it goes over the wire, without its signature. */
export type ApprovalTerms = {
  readonly approval_id: string;
  readonly operation: string;
  readonly target: string;
  readonly artifact_hash: string;
  readonly run_id: string;
  readonly purpose: ApprovalPurpose;
  /** With the purpose `compensate` only: the request whose effect is made good. */
  readonly logical_request_key?: string;
  readonly not_before: number;
  readonly not_after: number;
};

/** The label, 0x00, and the RFC 8785 bytes of the terms with `mesh_id`. A field that is undefined is absent. */
export function approvalBytes(meshId: string, terms: ApprovalTerms): Uint8Array {
  return encodeUtf8(`claudemesh-approval-1\0${canonicalTerms({ ...terms, mesh_id: meshId })}`);
}

/** What a stored approval's signature covers: 1, its terms alone, as it was at first; 2, what approvalBytes says. */
export const approvalSignatureVersions = [1, 2] as const;
export type ApprovalSignatureVersion = (typeof approvalSignatureVersions)[number];

/** For approvals that are stored. A new one is good by approvalBytes alone. */
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

// What an owner signs. The signature is over the canonical JSON of everything else in the request, so that an approval
// cannot be stretched to another operation, target, artifact, run, window or purpose.
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

/** RFC 8785 bytes of the terms. A field that is undefined is absent. */
export function approvalBytes(terms: ApprovalTerms): Uint8Array {
  const present = Object.entries(terms).filter(([field, value]) => field !== "signature" && value !== undefined);
  return encodeUtf8(canonicalJson(Object.fromEntries(present) as JsonObject));
}

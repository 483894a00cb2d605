// The built-in verification: everything that a registration claims, worked out again from what is stored. Nothing of the
// request is trusted; only the rows and the owner's signature are looked at.

import { sha256 } from "@claudemesh/members/sha256";
import { sameFingerprint } from "@claudemesh/protocol/messages/fingerprint";
import { effectKey, replayKey } from "@claudemesh/protocol/registrar/digests";
import type { Approval, StoredRequest } from "./records.ts";

/** The approval that the rows name, and whether its signature is its owner's. */
export type CheckedApproval = Approval & { readonly signed: boolean };

/** Every reason for which the rows do not hold together; empty: they do. */
export function findFaults(stored: StoredRequest, approval: CheckedApproval | undefined): string[] {
  const { registration, consumption } = stored;
  const { logicalRequestKey, binding } = registration;
  const { protocolVersion } = consumption;
  const replay = replayKey(sha256, { ...registration, protocolVersion, logicalRequestKey, binding });
  const checks: [holds: boolean, fault: string][] = [
    [sameFingerprint(replay, consumption.replayKey), "the replay key is not the registration's"],
    [
      sameFingerprint(effectKey(sha256, registration), consumption.effectKey),
      "the effect key is not the registration's",
    ],
    [consumption.binding === binding, "consumption and registration name different owners"],
    [/^[0-9a-f]{64}$/.test(registration.artifactHash), "the artifact hash is no SHA-256 in hex"],
    ...approvalChecks(stored, approval),
  ];
  return checks.flatMap(([holds, fault]) => (holds ? [] : [fault]));
}

function approvalChecks(
  { registration, consumption }: StoredRequest,
  approval: CheckedApproval | undefined,
): [holds: boolean, fault: string][] {
  if (approval === undefined) return [[false, "the approval is not there"]];
  const { terms, ownerPubkey, signed } = approval;
  const at = consumption.consumedAtMs;
  return [
    [terms.approval_id === consumption.approvalId, "the approval is another one"],
    [terms.purpose === "register", "the approval has another purpose"],
    [ownerPubkey === registration.binding, "the approval is another owner's"],
    [signed, "the owner's signature does not fit the approval"],
    [terms.operation === registration.operation, "the approval is for another operation"],
    [terms.target === registration.target, "the approval is for another target"],
    [terms.artifact_hash === registration.artifactHash, "the approval is for another artifact"],
    [terms.run_id === registration.runId, "the approval is for another run"],
    [terms.not_before <= at && at < terms.not_after, "the key was consumed outside the approval's window"],
  ];
}

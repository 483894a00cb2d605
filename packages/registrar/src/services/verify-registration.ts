// What follows the commit: read the rows again, check them, and append the verdict. The first call decides; a second
// verdict is dropped. Where nothing could be found out the registration stays inert, and is looked at again later.
import { storedApprovalBytes } from "@claudemesh/protocol/registrar/approval";
import type { StoredRequest, Verification } from "../core/records.ts";
import { findFaults } from "../core/verify-rows.ts";
import type { RegistrarStore } from "../ports.ts";
import { registrationBody } from "./bodies.ts";
import type { SignatureCheck } from "./signature-check.ts";

export type VerifierVerdict =
  | { readonly type: "passed" }
  | { readonly type: "failed"; readonly reason: string }
  /** It could not be run, or did not end in time. */
  | { readonly type: "inconclusive"; readonly reason: string };

/** A program that looks at a registration after the built-in checks. */
export type Verifier = {
  readonly name: string;
  readonly verify: (row: Readonly<Record<string, unknown>>) => Promise<VerifierVerdict>;
};

export type VerifyPorts = {
  readonly store: Pick<RegistrarStore, "requests" | "approvals">;
  readonly nowMs: () => number;
  readonly isSignedBy: SignatureCheck;
  /** Beside what is built in. */
  readonly verifier: Verifier | undefined;
  readonly onVerified: (result: Verification["state"] | "inconclusive", reason: string | undefined) => void;
};

const builtIn = "built-in";

/** The request as it stands then; undefined: there is none under this key. */
export async function verifyRegistration(
  ports: VerifyPorts,
  meshId: string,
  logicalRequestKey: string,
): Promise<StoredRequest | undefined> {
  const stored = await ports.store.requests.find(meshId, logicalRequestKey);
  if (stored === undefined || stored.verification !== undefined) return stored;
  const verdict = await judge(ports, meshId, stored);
  if (verdict.type === "inconclusive") {
    ports.onVerified("inconclusive", verdict.reason);
    return stored;
  }
  const verification = await ports.store.requests.verify(meshId, logicalRequestKey, {
    state: verdict.reasons.length === 0 ? "registered_closed" : "verify_failed",
    verifier: verdict.verifier,
    reasons: verdict.reasons,
    verifiedAtMs: ports.nowMs(),
  });
  ports.onVerified(verification.state, verdict.reasons[0]);
  return { ...stored, verification };
}

type Verdict =
  /** Without reasons it passed. */
  | { readonly type: "decided"; readonly verifier: string; readonly reasons: readonly string[] }
  | { readonly type: "inconclusive"; readonly reason: string };

async function judge(ports: VerifyPorts, meshId: string, stored: StoredRequest): Promise<Verdict> {
  const { store, verifier, isSignedBy } = ports;
  const approval = await store.approvals.find(meshId, stored.consumption.approvalId);
  const signed =
    approval !== undefined &&
    (await isSignedBy(
      approval.ownerPubkey,
      storedApprovalBytes(approval.signatureVersion, meshId, approval.terms),
      approval.signature,
    ));
  const faults = findFaults(stored, approval && { ...approval, signed });
  if (faults.length > 0 || verifier === undefined) return { type: "decided", verifier: builtIn, reasons: faults };
  const verdict = await verifier.verify({ mesh_id: meshId, ...registrationBody(stored) });
  if (verdict.type === "inconclusive") return verdict;
  return { type: "decided", verifier: verifier.name, reasons: verdict.type === "failed" ? [verdict.reason] : [] };
}

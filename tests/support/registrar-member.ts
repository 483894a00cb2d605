// A member's calls to the registrar over HTTP, signed by hand: what the product signs with is not what checks it.
import { hash } from "node:crypto";
import type { HttpAnswer, TestMember } from "./broker-harness.ts";

const artifactHash = hash("sha256", "the artifact", "hex");
export const effect = { operation: "release", target: "prod", artifact_hash: artifactHash, run_id: "run-1" };

let approvals = 0;

/** RFC 8785 of a flat object with plain names: its fields in order. */
function canonical(fields: Record<string, unknown>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1))));
}

export function signedApproval(owner: TestMember, terms: Record<string, unknown> = {}): Record<string, unknown> {
  const now = Date.now();
  const body = {
    approval_id: `approval-${++approvals}`,
    ...effect,
    purpose: "register",
    not_before: now - 1_000,
    not_after: now + 3_600_000,
    ...terms,
  };
  const signed = `claudemesh-approval-1\0${canonical({ ...body, mesh_id: owner.meshId })}`;
  return { ...body, signature: owner.keys.sign(Buffer.from(signed)) };
}

export async function grant(owner: TestMember, terms: Record<string, unknown> = {}): Promise<Record<string, string>> {
  const { status, body } = await owner.call("POST", "/registrar/approvals", signedApproval(owner, terms));
  if (status !== 201) throw new Error(`the approval was refused: ${JSON.stringify(body)}`);
  return { approval_id: String(body.approval_id), authorization_nonce: String(body.authorization_nonce) };
}

let attempts = 0;

export function requestWith(fields: Record<string, unknown>): Record<string, unknown> {
  return { protocol_version: "1", logical_request_key: "key-1", attempt_id: `a-${++attempts}`, ...effect, ...fields };
}

export function register(member: TestMember, fields: Record<string, unknown>): Promise<HttpAnswer> {
  return member.call("POST", "/registrar/requests", requestWith(fields));
}

// Approvals and registration requests for scenarios, and the form of the registrar's refusals.
import { randomBytes } from "node:crypto";
import { type ApprovalTerms, approvalBytes } from "@claudemesh/protocol/registrar/approval";
import { type Answer, expectAnswer, expectRefusal } from "../../frame/expect.ts";
import { aPublicKey, aText, aTime, aUuidV7, type Pattern } from "../../frame/pattern.ts";
import type { HttpAnswer } from "../../transport/http.ts";
import type { BrokerWorld, Caller, MeshMember } from "../broker/world.ts";

export type Effect = Pick<ApprovalTerms, "operation" | "target" | "artifact_hash" | "run_id">;

export type Approved = {
  readonly terms: ApprovalTerms;
  readonly approval_id: string;
  readonly authorization_nonce: string;
};

export type RegistrationRequest = Effect & {
  readonly protocol_version: string;
  readonly logical_request_key: string;
  readonly attempt_id: string;
  readonly approval_id: string;
  readonly authorization_nonce: string;
  readonly expires_at?: number;
};

export const hourMs = 3_600_000;

export function freshEffect(world: BrokerWorld, more: Partial<Effect> = {}): Effect {
  const artifact_hash = randomBytes(32).toString("hex");
  return { operation: "release", target: "prod", artifact_hash, run_id: world.fresh("run"), ...more };
}

export function termsFor(world: BrokerWorld, effect: Effect, more: Partial<ApprovalTerms> = {}): ApprovalTerms {
  const nowMs = Date.now();
  return {
    approval_id: world.fresh("approval"),
    ...effect,
    purpose: "register",
    not_before: nowMs - hourMs,
    not_after: nowMs + hourMs,
    ...more,
  };
}

export const signTerms = ({ keys, meshId }: Pick<MeshMember, "keys" | "meshId">, terms: ApprovalTerms) => ({
  ...terms,
  signature: keys.sign(approvalBytes(meshId, terms)),
});

/** An owner's approval of this effect, with its nonce. */
export async function approve(
  world: BrokerWorld,
  effect: Effect,
  more: Partial<ApprovalTerms> = {},
): Promise<Approved> {
  const { signingOwner } = world;
  const terms = termsFor(world, effect, more);
  const { approval_id, not_after } = terms;
  const answer = await signingOwner.call("POST", "/registrar/approvals", signTerms(signingOwner, terms));
  expectAnswer(answer, 201, { approval_id, authorization_nonce: aText, not_after });
  return { terms, approval_id, authorization_nonce: String(answer.body.authorization_nonce) };
}

export function requestFor(
  world: BrokerWorld,
  { terms, approval_id, authorization_nonce }: Approved,
  more: Partial<RegistrationRequest> = {},
): RegistrationRequest {
  const { operation, target, artifact_hash, run_id } = terms;
  return {
    protocol_version: "1",
    logical_request_key: world.fresh("key"),
    attempt_id: world.fresh("attempt"),
    approval_id,
    authorization_nonce,
    operation,
    target,
    artifact_hash,
    run_id,
    ...more,
  };
}

export const register = (caller: Caller, request: object): Promise<HttpAnswer> =>
  caller.call("POST", "/registrar/requests", request);

/** An approved effect that alice registers now. */
export async function registered(world: BrokerWorld, effect: Effect = freshEffect(world)) {
  const approved = await approve(world, effect);
  const request = requestFor(world, approved);
  const first = await register(world.alice, request);
  expectAnswer(first, 201, { duplicate: false, registration: registrationOf(world, request) });
  return { effect, approved, request, first, registration: first.body.registration as Pattern };
}

/** What a registration shows of its request. */
function registrationOf(world: BrokerWorld, request: RegistrationRequest): Pattern {
  const { authorization_nonce: _, expires_at: __, ...shown } = request;
  const { pubkey } = world.signingOwner;
  return {
    ...shown,
    registration_id: aUuidV7,
    binding: pubkey,
    replay_key: aPublicKey,
    effect_key: aPublicKey,
    registered_by: aPublicKey,
    registered_at: aTime,
  };
}

export const keyPath = (key: string, action = "") => `/registrar/requests/${encodeURIComponent(key)}${action}`;

/** A refusal that has its name in capitals beside the code. */
export function expectRefused<A extends Answer>(
  answer: A,
  status: number,
  code: string,
  more: { readonly [field: string]: Pattern } = {},
): A {
  return expectRefusal(answer, status, code.toLowerCase(), { code, ...more });
}

/** Fails unless nothing was ever committed under the key. */
export async function expectUnknown(world: BrokerWorld, key: string): Promise<void> {
  const attempts = { recorded: 0, retries: 0 };
  expectAnswer(await world.alice.call("GET", keyPath(key)), 200, { state: "unknown", attempts });
}

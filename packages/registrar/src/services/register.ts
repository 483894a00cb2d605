// One registration: look whether the key is consumed, decide and consume in one transaction, verify. A retry of what
// committed is answered by one read, whatever became of its approval since; its nonce is not looked at.
// Why: docs/decisions/0010.
import { hashSecret } from "@claudemesh/members/credentials";
import type { PlainMember } from "@claudemesh/members/ports";
import { sha256 } from "@claudemesh/members/sha256";
import { MeshError } from "@claudemesh/protocol/errors";
import { effectKey } from "@claudemesh/protocol/registrar/digests";
import { registrarRefusal } from "@claudemesh/protocol/registrar/registrar-refusals";
import { checkRegistrarText } from "@claudemesh/protocol/registrar/registrar-text";
import type { RegisterInput } from "@claudemesh/protocol/wire/registrar-operations";
import {
  type AskedRequest,
  answerConsumed,
  type RegistrationRequest,
  type RequestDecision,
} from "../core/phase-one.ts";
import type { StoredRequest } from "../core/records.ts";
import { requestBody } from "./bodies.ts";
import type { RetryCounter } from "./retry-counter.ts";
import { unboundRefusal } from "./unbound-refusal.ts";
import { type VerifyPorts, verifyRegistration } from "./verify-registration.ts";

export type RegisterPorts = VerifyPorts & {
  readonly nextId: () => string;
  readonly retries: Pick<RetryCounter, "add">;
  /** A verification could not be finished; the registration stands, and is verified later. */
  readonly onUnfinished: (error: unknown) => void;
};

export type Registered = { readonly duplicate: boolean; readonly stored: StoredRequest };

export async function register(ports: RegisterPorts, member: PlainMember, input: RegisterInput): Promise<Registered> {
  const { logical_request_key, attempt_id, approval_id, operation, target, run_id } = input;
  checkRegistrarText({ logical_request_key, attempt_id, approval_id, operation, target, run_id });
  const asked = readRequest(member, input);
  const prior = await answerPrior(ports, asked);
  if (prior !== undefined) return answer(ports, asked, prior, "before");
  const request = {
    ...asked,
    nonceHash: hashSecret(input.authorization_nonce),
    effectKey: effectKey(sha256, asked),
    registrationId: ports.nextId(),
  };
  const decision = await ports.store.requests.consume(request, ports.nowMs());
  if (decision.type !== "consume") return answer(ports, request, decision, "meanwhile");
  const inert = { ...decision.row, verification: undefined, compensation: undefined };
  return { duplicate: false, stored: await verifyOrLeave(ports, request, inert) };
}

function readRequest(member: PlainMember, input: RegisterInput): AskedRequest {
  return {
    operation: input.operation,
    target: input.target,
    artifactHash: input.artifact_hash,
    runId: input.run_id,
    meshId: member.meshId,
    memberPubkey: member.pubkey,
    protocolVersion: input.protocol_version,
    logicalRequestKey: input.logical_request_key,
    attemptId: input.attempt_id,
    approvalId: input.approval_id,
    expiresAtMs: input.expires_at,
  };
}

/** What is consumed never changes, so that a committed read may answer. */
async function answerPrior({ store, nowMs }: RegisterPorts, request: AskedRequest) {
  const { meshId, approvalId, logicalRequestKey } = request;
  const stored = await store.requests.findConsumed(meshId, logicalRequestKey);
  let binding: string | undefined;
  if (stored !== undefined) {
    const { consumption } = stored;
    const sameApproval = consumption.approvalId === approvalId;
    binding = sameApproval ? consumption.binding : (await store.approvals.find(meshId, approvalId))?.ownerPubkey;
  }
  return answerConsumed(request, stored, binding, nowMs());
}

/** `meanwhile`: the key was free when it was looked up, so that the request that holds it was under way at the same time. */
async function answer(
  ports: RegisterPorts,
  request: AskedRequest,
  decision: Exclude<RequestDecision, { type: "consume" }>,
  taken: "before" | "meanwhile",
): Promise<Registered> {
  if (decision.type !== "prior") throw refusalOf(decision);
  const { meshId, logicalRequestKey, attemptId, memberPubkey } = request;
  await ports.retries.add({ meshId, logicalRequestKey, attemptId, memberPubkey, atMs: ports.nowMs() });
  if (taken === "meanwhile") throw registrarRefusal("attempt_collision", requestBody(decision.stored));
  return { duplicate: true, stored: decision.stored };
}

function refusalOf(decision: Exclude<RequestDecision, { type: "consume" | "prior" }>): MeshError {
  switch (decision.type) {
    case "stale":
      return registrarRefusal(
        "request_stale",
        decision.prior === undefined ? {} : { prior: requestBody(decision.prior) },
      );
    case "mismatch":
      return registrarRefusal(
        "replay_duplicate",
        { conflict: "request_mismatch", ...requestBody(decision.stored) },
        `The key ${keyOf(decision.stored)} is taken, for ever, by a request for something else. Look with \`claudemesh registrar status\`; another effect needs another key.`,
      );
    case "effect_exists":
      return registrarRefusal(
        "replay_duplicate",
        { conflict: "effect_exists", ...requestBody(decision.stored) },
        `This effect is registered already, under the key ${keyOf(decision.stored)}. To do it again takes a new run.`,
      );
    case "unbound":
      return unboundRefusal(decision.reason);
    case "nonce_consumed":
      return registrarRefusal("replay_nonce_consumed");
    case "unauthorized":
      return new MeshError("unauthorized");
  }
}

function keyOf({ registration }: StoredRequest): string {
  return JSON.stringify(registration.logicalRequestKey);
}

async function verifyOrLeave(
  ports: RegisterPorts,
  { meshId, logicalRequestKey }: RegistrationRequest,
  inert: StoredRequest,
): Promise<StoredRequest> {
  try {
    return (await verifyRegistration(ports, meshId, logicalRequestKey)) ?? inert;
  } catch (error) {
    ports.onUnfinished(error);
    return inert;
  }
}

// One request of the benchmark as a function of its id: key, approval and run carry the id, everything else is the same in
// all of them. Seeding, registering and retrying all take it from here.
import { hash } from "node:crypto";
import { registrarProtocolVersion } from "@claudemesh/protocol/registrar/digests";
import type { RegisterInput } from "@claudemesh/protocol/wire/registrar-operations";

export const benchEffect = {
  operation: "release",
  target: "prod",
  artifact_hash: hash("sha256", "the artifact of the benchmark", "hex"),
} as const;
export const benchAttempt = "attempt-of-the-benchmark";

/** Texts that differ from one registration to the next. */
export type RegistrationIds = {
  readonly key: string;
  readonly runId: string;
  readonly approvalId: string;
  readonly attemptId: string;
};

export const idsOf = (id: string): RegistrationIds => ({ key: id, runId: id, approvalId: id, attemptId: benchAttempt });

export function requestOf(ids: RegistrationIds, authorizationNonce: string): RegisterInput {
  return {
    protocol_version: registrarProtocolVersion,
    logical_request_key: ids.key,
    attempt_id: ids.attemptId,
    approval_id: ids.approvalId,
    authorization_nonce: authorizationNonce,
    ...benchEffect,
    run_id: ids.runId,
  };
}

// What can be asked of the registrar: frame types, routes below /v1/meshes/:mesh and the schemas of their inputs. Texts
// are opaque here; registrar-text.ts checks that they are in NFC, which a schema cannot express.
import type { FromSchema, JSONSchema } from "json-schema-to-ts";
import { limits } from "../messages/limits.ts";
import { approvalPurposes } from "../registrar/approval.ts";

export const registrarLimits = {
  idCharacters: 128,
  keyCharacters: 256,
  operationCharacters: 256,
  targetCharacters: 1_024,
} as const;

const text = <const N extends number>(maxLength: N) =>
  ({ type: "string", minLength: 1, maxLength, pattern: "^[^\\u0000]*$" }) as const;

const approvalId = text(registrarLimits.idCharacters);
const attemptId = text(registrarLimits.idCharacters);
const logicalRequestKey = text(registrarLimits.keyCharacters);
const authorizationNonce = { type: "string", pattern: `^[!-~]{1,${registrarLimits.idCharacters}}$` } as const;
const time = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const;
const limit = { type: "integer", minimum: 1, maximum: limits.pageItems } as const;
const cursor = text(registrarLimits.idCharacters);
const effect = {
  operation: text(registrarLimits.operationCharacters),
  target: text(registrarLimits.targetCharacters),
  artifact_hash: { type: "string", pattern: "^[0-9a-f]{64}$" },
  run_id: text(registrarLimits.keyCharacters),
} as const;

function input<const R extends readonly string[], const P>(required: R, properties: P) {
  return { type: "object", additionalProperties: false, required, properties } as const;
}

const approveInputSchema = input(
  ["approval_id", "operation", "target", "artifact_hash", "run_id", "purpose", "not_before", "not_after", "signature"],
  {
    approval_id: approvalId,
    ...effect,
    purpose: { type: "string", enum: approvalPurposes },
    logical_request_key: logicalRequestKey,
    not_before: time,
    not_after: time,
    signature: { type: "string", pattern: "^[0-9a-f]{128}$" },
  },
) satisfies JSONSchema;
export type ApproveInput = FromSchema<typeof approveInputSchema>;

const approvalInputSchema = input(["approval_id"], { approval_id: approvalId }) satisfies JSONSchema;
export type ApprovalInput = FromSchema<typeof approvalInputSchema>;

const registerInputSchema = input(
  [
    "protocol_version",
    "logical_request_key",
    "attempt_id",
    "approval_id",
    "authorization_nonce",
    "operation",
    "target",
    "artifact_hash",
    "run_id",
  ],
  {
    protocol_version: { type: "string", enum: ["1"] },
    logical_request_key: logicalRequestKey,
    attempt_id: attemptId,
    approval_id: approvalId,
    authorization_nonce: authorizationNonce,
    ...effect,
    expires_at: time,
  },
) satisfies JSONSchema;
export type RegisterInput = FromSchema<typeof registerInputSchema>;

const requestInputSchema = input(["logical_request_key"], {
  logical_request_key: logicalRequestKey,
}) satisfies JSONSchema;
export type RequestInput = FromSchema<typeof requestInputSchema>;

const compensateInputSchema = input(["logical_request_key", "approval_id", "authorization_nonce", "attempt_id"], {
  logical_request_key: logicalRequestKey,
  approval_id: approvalId,
  authorization_nonce: authorizationNonce,
  attempt_id: attemptId,
}) satisfies JSONSchema;
export type CompensateInput = FromSchema<typeof compensateInputSchema>;

const registrarPageInputSchema = input([], { after: cursor, limit }) satisfies JSONSchema;
export type RegistrarPageInput = FromSchema<typeof registrarPageInputSchema>;

const requestPath = "/registrar/requests/:logical_request_key" as const;

export const registrarOperations = {
  "registrar.approve": { http: { method: "POST", path: "/registrar/approvals" }, input: approveInputSchema },
  "registrar.approvals": { http: { method: "GET", path: "/registrar/approvals" }, input: registrarPageInputSchema },
  "registrar.revoke": {
    http: { method: "POST", path: "/registrar/approvals/:approval_id/revoke" },
    input: approvalInputSchema,
  },
  "registrar.register": { http: { method: "POST", path: "/registrar/requests" }, input: registerInputSchema },
  "registrar.resolve": { http: { method: "GET", path: requestPath }, input: requestInputSchema },
  "registrar.attempts": { http: { method: "GET", path: `${requestPath}/attempts` }, input: requestInputSchema },
  "registrar.compensate": {
    http: { method: "POST", path: `${requestPath}/compensate` },
    input: compensateInputSchema,
  },
  "registrar.registrations": {
    http: { method: "GET", path: "/registrar/registrations" },
    input: registrarPageInputSchema,
  },
  "registrar.audit": { http: { method: "GET", path: "/registrar/audit" }, input: registrarPageInputSchema },
} as const;

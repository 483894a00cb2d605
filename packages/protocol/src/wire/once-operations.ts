// The operations of `once`, under /once/:key: claim the right to run an effect, renew it, record the result. The rules
// are in registrar/once-state.ts.
import type { FromSchema, JSONSchema } from "json-schema-to-ts";
import { limits } from "../messages/limits.ts";
import { onceClaimIdPattern, onceKeyPattern, onceLimits } from "../registrar/once-limits.ts";

const key = { type: "string", pattern: onceKeyPattern } as const;
const epoch = { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER } as const;
/** Chosen by the caller: any JSON. */
const result = { type: ["null", "boolean", "number", "string", "array", "object"], items: {} } as const;

function input<const R extends readonly string[], const P>(required: R, properties: P) {
  return { type: "object", additionalProperties: false, required, properties } as const;
}

export const onceClaimInputSchema = input(["key", "claim_id", "inputs_fingerprint", "lease_s"], {
  key,
  claim_id: { type: "string", pattern: onceClaimIdPattern },
  inputs_fingerprint: { type: "string", pattern: "^[0-9a-f]{64}$" },
  lease_s: { type: "integer", minimum: onceLimits.leaseSecondsMin, maximum: onceLimits.leaseSecondsMax },
}) satisfies JSONSchema;
export type OnceClaimInput = FromSchema<typeof onceClaimInputSchema>;

export const onceRenewInputSchema = input(["key", "epoch"], { key, epoch }) satisfies JSONSchema;
export type OnceRenewInput = FromSchema<typeof onceRenewInputSchema>;

export const onceRecordInputSchema = input(["key", "epoch", "result"], { key, epoch, result }) satisfies JSONSchema;
export type OnceRecordInput = FromSchema<typeof onceRecordInputSchema>;

export const onceResolveInputSchema = input(["key", "epoch", "outcome"], {
  key,
  epoch,
  outcome: { type: "string", enum: ["done", "not_done"] },
  result,
}) satisfies JSONSchema;
export type OnceResolveInput = FromSchema<typeof onceResolveInputSchema>;

export const onceGetInputSchema = input(["key"], { key }) satisfies JSONSchema;
export type OnceGetInput = FromSchema<typeof onceGetInputSchema>;

export const onceListInputSchema = input([], {
  /** Absent: keys in every state. */
  state: { type: "string", enum: ["running", "uncertain", "done", "released"] },
  after: { type: "string", maxLength: 128, pattern: "^[^\\u0000]*$" },
  limit: { type: "integer", minimum: 1, maximum: limits.pageItems },
}) satisfies JSONSchema;
export type OnceListInput = FromSchema<typeof onceListInputSchema>;

export const onceOperations = {
  "once.list": { http: { method: "GET", path: "/once" }, input: onceListInputSchema },
  "once.claim": { http: { method: "POST", path: "/once/:key/claim" }, input: onceClaimInputSchema },
  "once.renew": { http: { method: "POST", path: "/once/:key/renew" }, input: onceRenewInputSchema },
  "once.record": { http: { method: "POST", path: "/once/:key/record" }, input: onceRecordInputSchema },
  "once.resolve": { http: { method: "POST", path: "/once/:key/resolve" }, input: onceResolveInputSchema },
  "once.get": { http: { method: "GET", path: "/once/:key" }, input: onceGetInputSchema },
} as const;

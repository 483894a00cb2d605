// The refusals of the registrar: the catalogue's code as `error`, and the same in capitals as `code`, the name that the
// registrar's own contract gives it.
import { type ErrorCode, MeshError } from "../errors/errors.ts";

export type RegistrarErrorCode = Extract<
  ErrorCode,
  | "replay_duplicate"
  | "attempt_collision"
  | "replay_nonce_consumed"
  | "nonce_unbound"
  | "request_stale"
  | "not_compensable"
  | "replay_surface_not_fit"
>;

/** The reason for refusing a request that names something taken. */
export type ReplayConflict = "request_mismatch" | "effect_exists" | "already_compensated";

export function registrarRefusal(
  code: RegistrarErrorCode,
  details: Readonly<Record<string, unknown>> = {},
  message?: string,
): MeshError {
  return new MeshError(code, message, { code: code.toUpperCase(), ...details });
}

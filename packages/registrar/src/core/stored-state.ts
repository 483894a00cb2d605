// Which state the rows under a key add up to.
import { type RegistrationState, registrationState } from "@claudemesh/protocol/registrar/registration-state";
import type { StoredRequest } from "./records.ts";

export function stateOf(stored: StoredRequest | undefined): RegistrationState {
  return registrationState({
    consumed: stored !== undefined,
    verified: stored?.verification?.state,
    compensated: stored?.compensation !== undefined,
  });
}

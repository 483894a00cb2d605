// The states of a registration, and the only steps between them. A state is never stored and overwritten: each step
// appends a row, and which rows exist says which state it is.
//
// S0 issue: `unknown`. S1, a failure before the commit, leaves `unknown`. S2 commit: `inert`. The verifier makes it
// `registered_closed`, or S3 `verify_failed`, from where only a compensation leads on. S4, a second attempt at once,
// finds the state of the one that won.

export const registrationStates = ["unknown", "inert", "registered_closed", "verify_failed", "compensated"] as const;
export type RegistrationState = (typeof registrationStates)[number];

/** What a verifier can say. */
export type VerifiedState = Extract<RegistrationState, "registered_closed" | "verify_failed">;

export const registrationSteps: Readonly<Record<RegistrationState, readonly RegistrationState[]>> = {
  unknown: ["inert"],
  inert: ["registered_closed", "verify_failed"],
  registered_closed: [],
  verify_failed: ["compensated"],
  compensated: [],
};

/** Which rows there are. */
export type RegistrationRows = {
  readonly consumed: boolean;
  readonly verified: VerifiedState | undefined;
  readonly compensated: boolean;
};

export function registrationState({ consumed, verified, compensated }: RegistrationRows): RegistrationState {
  if (!consumed) return "unknown";
  if (compensated) return "compensated";
  return verified ?? "inert";
}

/** A closed registration has nothing to make good, and one that is not verified yet may still turn out well. */
export function isCompensable(state: RegistrationState): boolean {
  return registrationSteps[state].includes("compensated");
}

// The states of a registration, and the only steps between them. A state is not stored: each step appends a row, and
// the state follows from the rows that exist.
//
// S0 issue: `unknown`. S1, a failure before the commit, leaves `unknown`. S2 commit: `inert`. The verifier makes it
// `registered_closed`, or S3 `verify_failed`, which only a compensation leaves. S4, a second attempt at the same time,
// finds the state of the attempt that won.

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

/** A closed registration needs no compensation, and one that is not verified yet may still succeed. */
export function isCompensable(state: RegistrationState): boolean {
  return registrationSteps[state].includes("compensated");
}

// The first step of a call of `once`: committed rows either answer it, or it may go on to a transaction. Only a call that would
// begin a new epoch has to be admitted; a retry costs one read.
// Why: docs/decisions/0053.
import type { OnceDecision } from "@claudemesh/protocol/registrar/once-state";
import type { Admit, OnceOutcome } from "../ports/once-store.ts";

export type OnceAdmission =
  /** Committed rows answer the call; it changes nothing. */
  | { readonly type: "answered"; readonly answer: OnceOutcome }
  /** The call would change something, and may. */
  | { readonly type: "admitted" };

export async function admitNew(decide: () => Promise<OnceDecision>, admit: Admit): Promise<OnceAdmission> {
  const first = await decide();
  if (first.begins !== true) return admissionOf(first);
  try {
    await admit();
    return { type: "admitted" };
  } catch (refusal) {
    // Another try may have begun the epoch meanwhile, and what exists needs no admission.
    const again = await decide();
    if (again.begins === true) throw refusal;
    return admissionOf(again);
  }
}

function admissionOf({ next, answer }: OnceDecision): OnceAdmission {
  return next === undefined ? { type: "answered", answer } : { type: "admitted" };
}

export const anything: Admit = async () => undefined;

// What a call of `once` hears before it may change something: the answer that committed rows give, or that nothing speaks
// against it. Only what would begin a new epoch has to be admitted; a retry is one read.
// Why: docs/decisions/0053.
import type { OnceDecision } from "@claudemesh/protocol/registrar/once-state";
import type { Admit, OnceOutcome } from "../ports/once-store.ts";

/** Undefined: it would change something, and may. */
export async function admitNew(decide: () => Promise<OnceDecision>, admit: Admit): Promise<OnceOutcome | undefined> {
  const seen = await decide();
  if (seen.next === undefined) return seen.answer;
  if (seen.begins !== true) return undefined;
  try {
    await admit();
    return undefined;
  } catch (refusal) {
    // Another try may have begun it meanwhile, and what exists is not a matter of admission.
    const again = await decide();
    if (again.begins === true) throw refusal;
    return again.next === undefined ? again.answer : undefined;
  }
}

export const anything: Admit = async () => undefined;

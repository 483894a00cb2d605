// Finds registrations without a verdict, left by a process that ended between commit and verification, and finishes
// them. Any number of brokers may do this at once: the first verdict stands.
import { createUuidV7Generator, uuidV7TimeMs } from "@claudemesh/protocol/ids";
import type { UnverifiedRequest } from "../ports.ts";
import { type VerifyPorts, verifyRegistration } from "./verify-registration.ts";

const perRead = 64;

/** Every registration, once at start; later only those of the last while, since older ones were seen then. */
export type FinishScope = "all" | { readonly registeredSinceMs: number };

/**
 * How many got a verdict. What stays inconclusive is passed over, and looked at the next time; so is what was registered
 * after `untilMs`, since the request that did it is at work on it.
 */
export async function finishVerifications(
  ports: VerifyPorts,
  scope: FinishScope,
  goOn: () => boolean = () => true,
  untilMs: number = Number.POSITIVE_INFINITY,
): Promise<number> {
  const sinceId = scope === "all" ? "" : firstIdOf(scope.registeredSinceMs);
  let finished = 0;
  let after: UnverifiedRequest | undefined;
  while (goOn()) {
    const found = await ports.store.requests.unverified(sinceId, after, perRead);
    for (const { meshId, registrationId, logicalRequestKey } of found) {
      if (!goOn()) return finished;
      if ((uuidV7TimeMs(registrationId) ?? 0) > untilMs) continue;
      const stored = await verifyRegistration(ports, meshId, logicalRequestKey);
      if (stored?.verification !== undefined) finished += 1;
    }
    after = found.at(-1);
    if (found.length < perRead) return finished;
  }
  return finished;
}

/** Ids begin with their millisecond. */
function firstIdOf(timeMs: number): string {
  const atMs = Math.max(0, timeMs);
  return createUuidV7Generator({ nowMs: () => atMs, randomBytes: (length) => new Uint8Array(length) })();
}

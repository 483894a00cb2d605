// Finds registrations without a verdict, left by a process that ended between commit and verification, and finishes
// them. Any number of brokers may do this at once: the first verdict stands.
import { createUuidV7Generator, uuidV7TimeMs } from "@claudemesh/protocol/ids";
import type { UnverifiedRequest } from "../ports.ts";
import { type VerifyPorts, verifyRegistration } from "./verify-registration.ts";

const perRead = 64;

/** Every registration, once at start; later only those that the look before may have missed or left. */
export type FinishScope = "all" | { readonly registeredSinceMs: number };

/** How many got a verdict, and since when the oldest is there that has none. */
export type Finished = { readonly finished: number; readonly oldestLeftMs: number | undefined };

/**
 * What stays inconclusive is passed over, and looked at the next time; so is what was registered at a time that
 * `isUnderWay` names, since the request that did it is at work on it.
 */
export async function finishVerifications(
  ports: VerifyPorts,
  scope: FinishScope,
  goOn: () => boolean = () => true,
  isUnderWay: (registeredAtMs: number) => boolean = () => false,
): Promise<Finished> {
  const sinceId = scope === "all" ? "" : firstIdOf(scope.registeredSinceMs);
  let finished = 0;
  let oldestLeftMs: number | undefined;
  let after: UnverifiedRequest | undefined;
  while (goOn()) {
    const batch = await ports.store.requests.unverified(sinceId, after, perRead);
    for (const { meshId, registrationId, logicalRequestKey } of batch) {
      if (!goOn()) return { finished, oldestLeftMs };
      const registeredAtMs = uuidV7TimeMs(registrationId) ?? 0;
      const isOurs = !isUnderWay(registeredAtMs);
      const stored = isOurs ? await verifyRegistration(ports, meshId, logicalRequestKey) : undefined;
      if (stored?.verification !== undefined) finished += 1;
      else if (stored !== undefined || !isOurs) oldestLeftMs = Math.min(oldestLeftMs ?? registeredAtMs, registeredAtMs);
    }
    after = batch.at(-1);
    if (batch.length < perRead) break;
  }
  return { finished, oldestLeftMs };
}

/** Ids begin with their millisecond. */
function firstIdOf(timeMs: number): string {
  const atMs = Math.max(0, timeMs);
  return createUuidV7Generator({ nowMs: () => atMs, randomBytes: (length) => new Uint8Array(length) })();
}

// How a consumed id is answered. Used by the look-up before any limit, and again under the lock for
// a send that lost a race: both must say the same.
import type { AcceptResult } from "@claudemesh/protocol/messages/accept-result";
import { decideClaim } from "@claudemesh/protocol/messages/claim";
import { fingerprintPrefix } from "@claudemesh/protocol/messages/fingerprint";
import type { FateResult, StoredAccept } from "../ports.ts";

export type SendIdentity = {
  readonly clientMessageId: string;
  readonly senderPubkey: string;
  readonly fingerprint: Uint8Array;
};

/** Undefined where the id is free. */
export function answerFromStored(stored: StoredAccept | undefined, offered: SendIdentity): AcceptResult | undefined {
  if (stored === undefined) return undefined;
  const { clientMessageId } = offered;
  const decision = decide(stored, offered);
  if (decision === "first") return undefined;
  if (decision === "owned_by_another") return { type: "owned_by_another", clientMessageId };
  if (decision === "different") {
    return { type: "reused", clientMessageId, brokerFingerprintPrefix: fingerprintPrefix(stored.fingerprint) };
  }
  return {
    type: "duplicate",
    clientMessageId,
    brokerMessageId: stored.brokerMessageId,
    historyId: stored.historyId,
    historyAvailable: stored.historyAvailable,
    firstSeenAt: stored.firstSeenAtMs,
  };
}

/** The id was consumed before: this call changed nothing. */
export function isAnsweredByClaim({ type }: AcceptResult): boolean {
  return type === "duplicate" || type === "reused" || type === "owned_by_another";
}

/** The fate of an id that is consumed; undefined where it is not. */
export function fateFromStored(
  stored: StoredAccept | undefined,
  offered: SendIdentity,
): Exclude<FateResult, { fate: "none" }> | undefined {
  const decision = decide(stored, offered);
  if (stored === undefined || decision === "first") return undefined;
  if (decision !== "same") return { fate: "taken" };
  const { brokerMessageId, historyId, historyAvailable } = stored;
  return { fate: "committed", brokerMessageId, historyId, historyAvailable };
}

function decide(stored: StoredAccept | undefined, offered: SendIdentity) {
  const claim = stored && { fingerprint: stored.fingerprint, owner: stored.senderPubkey };
  return decideClaim(claim, { fingerprint: offered.fingerprint, owner: offered.senderPubkey });
}

// All states of a key of `once`, and all steps between them. The history of a key consists of epochs: each epoch is one
// permission to run the effect, given to one claim of one member.
//
//   absent ──claim──▶ running ──record──▶ done
//                        │ the lease ends, by the clock alone
//                        ▼
//                    uncertain ──record by its holder, or resolve done──▶ done
//                        │ resolve not_done
//                        ▼
//                    released ──claim, under the next epoch──▶ running
//
// A store reads the epochs that a call is about, asks here, writes the decision, and answers. Correctness needs no timer:
// a lease that has ended holds nothing, whether or not a row says so yet (REG-10).
// Why: docs/decisions/0015.

export type OnceEpoch = {
  readonly epoch: number;
  /** Names one attempt to claim. The same attempt never gets a second epoch. */
  readonly claimId: string;
  /** The public key of the member that claimed. */
  readonly holder: string;
  /** Lower-case hex. */
  readonly inputsFingerprint: string;
  readonly leaseSeconds: number;
  readonly claimedAtMs: number;
  readonly leaseUntilMs: number;
  readonly settlement: OnceSettlement | undefined;
};

/** How an epoch ended, for good. A result is canonical JSON text. */
export type OnceSettlement = {
  readonly by: string;
  readonly atMs: number;
} & (
  | { readonly how: "recorded"; readonly result: string }
  | { readonly how: "resolved_done"; readonly result: string }
  | { readonly how: "resolved_not_done" }
);

export type SettledEpoch = OnceEpoch & { readonly settlement: OnceSettlement };

export type OnceState = "absent" | "running" | "uncertain" | "done" | "released";

/** The present state of a key, from its newest epoch. */
export function onceStateAt(newest: OnceEpoch | undefined, nowMs: number): OnceState {
  if (newest === undefined) return "absent";
  if (newest.settlement !== undefined) return newest.settlement.how === "resolved_not_done" ? "released" : "done";
  return nowMs < newest.leaseUntilMs ? "running" : "uncertain";
}

export type OnceAnswer =
  /** The caller may run the effect until the lease ends. */
  | { readonly type: "held"; readonly epoch: OnceEpoch }
  /** The effect is done, and the epoch has its result. */
  | { readonly type: "done"; readonly epoch: SettledEpoch }
  /** The epoch ended as the caller says, now or earlier. */
  | { readonly type: "settled"; readonly epoch: SettledEpoch }
  /** The epoch ended in another way, and that is final. */
  | { readonly type: "settled_otherwise"; readonly epoch: SettledEpoch }
  | { readonly type: "running"; readonly epoch: OnceEpoch }
  | { readonly type: "uncertain"; readonly epoch: OnceEpoch }
  | { readonly type: "inputs_mismatch"; readonly epoch: OnceEpoch }
  | { readonly type: "unknown_epoch" }
  | { readonly type: "not_the_holder"; readonly epoch: OnceEpoch };

/** An answer, and the epoch to write before the answer is sent: a new one where `begins` is set. */
export type OnceDecision = { readonly answer: OnceAnswer; readonly next?: OnceEpoch; readonly begins?: true };

export type OnceClaim = {
  readonly claimId: string;
  readonly holder: string;
  readonly inputsFingerprint: string;
  readonly leaseSeconds: number;
};

/** `own`: the epoch that this same claim of this member got before, the newest or an older one. */
export function decideOnceClaim(
  stored: { readonly newest: OnceEpoch | undefined; readonly own: OnceEpoch | undefined },
  claim: OnceClaim,
  nowMs: number,
): OnceDecision {
  const { newest, own } = stored;
  const state = onceStateAt(newest, nowMs);
  if (newest === undefined) return grant(1, claim, nowMs);
  if (isSettled(newest) && state === "released") {
    // Nothing was done under a released key, so the next claim may have other inputs. A claim that was resolved away
    // gets no second chance, because its caller may be long gone.
    return own !== undefined && isSettled(own)
      ? { answer: { type: "settled_otherwise", epoch: own } }
      : grant(newest.epoch + 1, claim, nowMs);
  }
  if (newest.inputsFingerprint !== claim.inputsFingerprint)
    return { answer: { type: "inputs_mismatch", epoch: newest } };
  if (isSettled(newest)) return { answer: { type: "done", epoch: newest } };
  if (own !== undefined && isSettled(own)) return { answer: { type: "settled_otherwise", epoch: own } };
  if (state === "uncertain") return { answer: { type: "uncertain", epoch: newest } };
  return { answer: { type: own === undefined ? "running" : "held", epoch: newest } };
}

function grant(epoch: number, claim: OnceClaim, nowMs: number): OnceDecision {
  const next: OnceEpoch = {
    ...claim,
    epoch,
    claimedAtMs: nowMs,
    leaseUntilMs: nowMs + claim.leaseSeconds * 1000,
    settlement: undefined,
  };
  return { answer: { type: "held", epoch: next }, next, begins: true };
}

/** A lease that has ended stays ended: a caller that got `uncertain` may be checking the effect by now. */
export function decideOnceRenewal(stored: OnceEpoch | undefined, holder: string, nowMs: number): OnceDecision {
  if (stored === undefined) return { answer: { type: "unknown_epoch" } };
  if (stored.holder !== holder) return { answer: { type: "not_the_holder", epoch: stored } };
  if (isSettled(stored)) return { answer: { type: "settled_otherwise", epoch: stored } };
  if (onceStateAt(stored, nowMs) === "uncertain") return { answer: { type: "uncertain", epoch: stored } };
  const leaseUntilMs = Math.max(stored.leaseUntilMs, nowMs + stored.leaseSeconds * 1000);
  const next = { ...stored, leaseUntilMs };
  return { answer: { type: "held", epoch: next }, next };
}

/**
 * A record is accepted even while the epoch is uncertain, because its holder knows best whether the effect happened.
 * After a resolve it never is: others may have acted on that.
 */
export function decideOnceRecord(
  stored: OnceEpoch | undefined,
  record: { readonly holder: string; readonly result: string },
  nowMs: number,
): OnceDecision {
  if (stored === undefined) return { answer: { type: "unknown_epoch" } };
  if (stored.holder !== record.holder) return { answer: { type: "not_the_holder", epoch: stored } };
  if (isSettled(stored)) {
    const { settlement } = stored;
    const same = settlement.how === "recorded" && settlement.result === record.result;
    return { answer: { type: same ? "settled" : "settled_otherwise", epoch: stored } };
  }
  return settle(stored, { how: "recorded", result: record.result, by: record.holder, atMs: nowMs });
}

export type OnceResolution =
  /** Without a result, any result matches. */
  { readonly outcome: "done"; readonly result: string | undefined } | { readonly outcome: "not_done" };

/**
 * Any member's statement about an uncertain epoch. A running epoch has a holder, which will record the result itself.
 */
export function decideOnceResolve(
  stored: OnceEpoch | undefined,
  resolution: OnceResolution & { readonly by: string },
  nowMs: number,
): OnceDecision {
  if (stored === undefined) return { answer: { type: "unknown_epoch" } };
  if (isSettled(stored)) {
    return { answer: { type: agrees(stored.settlement, resolution) ? "settled" : "settled_otherwise", epoch: stored } };
  }
  if (onceStateAt(stored, nowMs) === "running") return { answer: { type: "running", epoch: stored } };
  const { by } = resolution;
  if (resolution.outcome === "not_done") return settle(stored, { how: "resolved_not_done", by, atMs: nowMs });
  return settle(stored, { how: "resolved_done", result: resolution.result ?? "null", by, atMs: nowMs });
}

function agrees(settlement: OnceSettlement, resolution: OnceResolution): boolean {
  if (settlement.how === "resolved_not_done") return resolution.outcome === "not_done";
  if (resolution.outcome === "not_done") return false;
  return resolution.result === undefined || resolution.result === settlement.result;
}

function settle(stored: OnceEpoch, settlement: OnceSettlement): OnceDecision {
  const next = { ...stored, settlement };
  return { answer: { type: "settled", epoch: next }, next };
}

function isSettled(epoch: OnceEpoch): epoch is SettledEpoch {
  return epoch.settlement !== undefined;
}

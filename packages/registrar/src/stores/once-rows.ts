// A row of once_claim and the epoch that it is, for both stores. They differ only in how times are stored.
import type { OnceEpoch, OnceSettlement } from "@claudemesh/protocol/registrar/once-state";

export type OnceRow<Time> = {
  epoch: number;
  claim_id: string;
  holder_pubkey: string;
  inputs_fingerprint: string;
  lease_seconds: number;
  claimed_at: Time;
  lease_until: Time;
  settled_how: OnceSettlement["how"] | null;
  settled_by: string | null;
  settled_at: Time | null;
  result: string | null;
};

export const onceColumns =
  "epoch, claim_id, holder_pubkey, inputs_fingerprint, lease_seconds, claimed_at, lease_until, " +
  "settled_how, settled_by, settled_at, result";

export function epochOf<Time>(row: OnceRow<Time>, toMs: (time: Time) => number): OnceEpoch {
  return {
    epoch: row.epoch,
    claimId: row.claim_id,
    holder: row.holder_pubkey,
    inputsFingerprint: row.inputs_fingerprint,
    leaseSeconds: row.lease_seconds,
    claimedAtMs: toMs(row.claimed_at),
    leaseUntilMs: toMs(row.lease_until),
    settlement: settlementOf(row, toMs),
  };
}

function settlementOf<Time>(row: OnceRow<Time>, toMs: (time: Time) => number): OnceSettlement | undefined {
  if (row.settled_how === null || row.settled_by === null || row.settled_at === null) return undefined;
  const common = { by: row.settled_by, atMs: toMs(row.settled_at) };
  if (row.settled_how === "resolved_not_done") return { how: row.settled_how, ...common };
  return { how: row.settled_how, result: row.result ?? "null", ...common };
}

/** What a renewal or a settlement writes, in the order of the columns lease_until to result. */
export function changedValues<Time>(next: OnceEpoch, toTime: (ms: number) => Time): (Time | string | null)[] {
  const { leaseUntilMs, settlement } = next;
  if (settlement === undefined) return [toTime(leaseUntilMs), null, null, null, null];
  const result = settlement.how === "resolved_not_done" ? null : settlement.result;
  return [toTime(leaseUntilMs), settlement.how, settlement.by, toTime(settlement.atMs), result];
}

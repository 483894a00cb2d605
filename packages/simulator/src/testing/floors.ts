// What a hunt must have met to mean anything: work, faults, and the answers that are hard to come by.
import type { Totals } from "../hunt.ts";

const perHourMin = { operations: 100, faults: 1 };
const outcomesMin: readonly (readonly [outcome: string, count: number])[] = [
  ["send 202 queued", 100],
  ["send unanswered", 1],
  ["retry 200 done", 50],
  ["retry 202 queued", 1],
  ["clash 409 idempotency_key_reused", 5],
  ["requeue 200 ", 10],
  ["requeue 409 not_requeueable", 1],
  ["consume 200 ", 50],
  ["consume 409 lease_lost", 1],
  ["read_history 200 ", 10],
  ["prune 200 ", 1],
  ["row tombstone", 1],
  ["row aborted", 1],
  ["row dead idempotency_key_reused", 1],
  ["transact accepted", 50],
  ["transact stacked accepted", 50],
  ["transact send_rejected_error", 1],
  ["branch created", 5],
  ["branch deleted", 5],
  ["merge resolved merged", 5],
  ["takeover session_revoked_error", 5],
  ["replay replayed", 10],
  ["replay replay_mismatch_error", 5],
  ["read_past read", 10],
  ["register registered", 50],
  ["register_again registered before", 10],
  ["collide same_request registered", 3],
  ["collide same_effect registered", 3],
  ["compensate compensated", 3],
  ["misuse nonce_unbound", 3],
  ["misuse replay_duplicate", 3],
  ["misuse request_stale", 3],
  ["once ran", 20],
  ["once was done", 20],
  ["once unanswered", 3],
  ["once uncertain", 3],
  ["resolve done", 1],
  ["resolve not_done", 5],
];

/** What only long hunts meet for certain. */
export const rareOutcomes: typeof outcomesMin = [
  ["send 507 insufficient_storage", 1],
  ["row dead expired", 1],
  ["row dead fenced", 1],
  ["requeue 409 already_accepted", 1],
  ["requeue 409 fate_unknown", 1],
  ["transact conflict_error", 10],
  ["transact dependency_rejected_error", 5],
  ["transact patch_error", 1],
  ["transact session_revoked_error", 5],
  ["replay conflict_error", 5],
  ["misuse replay_nonce_consumed", 10],
  ["compensate compensated before", 5],
  ["once inputs_mismatch", 5],
  ["once effect_failed", 5],
  ["once declined", 5],
];

/** What was missed; nothing, in a hunt that is worth its time. */
export function describeFloors(totals: Totals, further: typeof outcomesMin = []): string[] {
  const { hours, operations, faults, outcomes } = totals;
  const missed = [...outcomesMin, ...further]
    .filter(([outcome, least]) => (outcomes.get(outcome) ?? 0) < least)
    .map(([name]) => name);
  if (operations / hours < perHourMin.operations) missed.push(`${operations} operations in ${hours} hours`);
  if (faults / hours < perHourMin.faults) missed.push(`${faults} faults in ${hours} hours`);
  return missed;
}

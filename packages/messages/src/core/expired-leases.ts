// Leases that have expired, as the next lease request of the queue finds them. That request writes down what became of each,
// so that no later request reads it again. The scan is bounded, because the request waits for it.
// Why: docs/decisions/0101.
import type { LeaseOutcome } from "../ports/queues.ts";
import { messageAt } from "./queue-message.ts";
import type { QueueMove, QueueRow } from "./stored-queue-message.ts";

/** A scan reads the leases that expired first; any others wait for the next scan. */
export const expiredPerScan = 1_000;
/** How often one request scans when nothing that it finds can be leased. */
const scansPerRequest = 10;

export type ExpiredLeases = {
  /** Messages whose last delivery this was. */
  readonly parked: readonly QueueMove[];
  /** Messages that may be leased again. */
  readonly deliverable: readonly QueueRow[];
  /** The scan reached its bound, so that more leases may have expired than it read. */
  readonly isFull: boolean;
};

/** `rows` are stored as leased, and their leases had expired by `nowMs`. */
export function splitExpired(rows: readonly QueueRow[], maxDeliveries: number, nowMs: number): ExpiredLeases {
  const parked: QueueMove[] = [];
  const deliverable: QueueRow[] = [];
  for (const from of rows) {
    const to = messageAt(from.message, maxDeliveries, nowMs);
    if (to.state === "parked") parked.push({ from, to });
    else deliverable.push(from);
  }
  return { parked, deliverable, isFull: rows.length >= expiredPerScan };
}

/** What to write for every lease that a scan found, where `leased` are the moves of those that were leased again. */
export function movesOf(
  { parked, deliverable }: ExpiredLeases,
  leased: readonly QueueMove[],
  maxDeliveries: number,
  nowMs: number,
): QueueMove[] {
  const moved = new Set(leased.map(({ from }) => from));
  const rest = deliverable.filter((from) => !moved.has(from));
  return [...parked, ...leased, ...rest.map((from) => ({ from, to: messageAt(from.message, maxDeliveries, nowMs) }))];
}

/**
 * `retry`: what the scan found was parked, or had lost its message to retention. That is written by now, and there may be
 * more to find, so the request has to scan again.
 */
export type LeaseAttempt = LeaseOutcome | { readonly type: "retry" };

/** Repeats an attempt until it has an outcome. After too many attempts the queue counts as empty. */
export async function leaseWithRetries(attempt: () => Promise<LeaseAttempt>): Promise<LeaseOutcome> {
  for (let scans = 0; scans < scansPerRequest; scans += 1) {
    const outcome = await attempt();
    if (outcome.type !== "retry") return outcome;
  }
  return { type: "empty" };
}

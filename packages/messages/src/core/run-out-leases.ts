// Leases that have run out, as whoever leases next finds them: he writes down what each became, so that nobody after him
// finds them again. How many he looks at has a bound, for they are his to wait for.
// Why: docs/decisions/0101.
import type { LeaseOutcome } from "../ports/queues.ts";
import { messageAt } from "./queue-message.ts";
import type { QueueMove, QueueRow } from "./stored-queue-message.ts";

/** Those that ran out first; the others wait for the next look. */
export const runOutPerLook = 1_000;
/** How often one request looks when nothing that it found can be handed out. */
const looksPerRequest = 10;

export type RunOut = {
  /** After their last delivery. */
  readonly parked: readonly QueueMove[];
  /** They may be handed out again. */
  readonly deliverable: readonly QueueRow[];
  /** There may be others, which nobody has looked at. */
  readonly isFull: boolean;
};

/** `rows` are written as leased, and ran out by `nowMs`. */
export function sortRunOut(rows: readonly QueueRow[], maxDeliveries: number, nowMs: number): RunOut {
  const parked: QueueMove[] = [];
  const deliverable: QueueRow[] = [];
  for (const from of rows) {
    const to = messageAt(from.message, maxDeliveries, nowMs);
    if (to.state === "parked") parked.push({ from, to });
    else deliverable.push(from);
  }
  return { parked, deliverable, isFull: rows.length >= runOutPerLook };
}

/** What all of it became, when `dealt` is what was done with what could be handed out. */
export function movesOf(
  { parked, deliverable }: RunOut,
  dealt: readonly QueueMove[],
  maxDeliveries: number,
  nowMs: number,
): QueueMove[] {
  const taken = new Set(dealt.map(({ from }) => from));
  const left = deliverable.filter((from) => !taken.has(from));
  return [...parked, ...dealt, ...left.map((from) => ({ from, to: messageAt(from.message, maxDeliveries, nowMs) }))];
}

/** Looks until there is an outcome, or for long enough. */
export async function lookForMessages(look: () => Promise<LeaseOutcome | undefined>): Promise<LeaseOutcome> {
  for (let looks = 0; looks < looksPerRequest; looks += 1) {
    const outcome = await look();
    if (outcome !== undefined) return outcome;
  }
  return { type: "empty" };
}

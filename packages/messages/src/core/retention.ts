// Which messages are old enough to go. History is in commit order, and so is retention: nothing goes before what was
// accepted ahead of it.
// Why: docs/decisions/0030.
import type { DestinationKind } from "@claudemesh/protocol/messages/addresses";

/** A row of history, as retention sees it. */
export type AgedRow = {
  readonly historyId: number;
  readonly brokerMessageId: string;
  readonly clientMessageId: string;
  readonly kind: DestinationKind;
  readonly ref: string;
  readonly acceptedAtMs: number;
};

/**
 * How many of these rows, which follow each other in history, may go: all up to the first that is not old enough. A time
 * that is still to come was given by a clock that was wrong, and says nothing: such a row goes with the next old one.
 */
export function countRemovable(
  rows: readonly Pick<AgedRow, "acceptedAtMs">[],
  beforeMs: number,
  nowMs: number,
): number {
  let removable = 0;
  for (const [index, { acceptedAtMs }] of rows.entries()) {
    if (acceptedAtMs < beforeMs) removable = index + 1;
    else if (acceptedAtMs <= nowMs) break;
  }
  return removable;
}

// How long a row may be tried, and how long the broker's word about it is worth something. Both follow from what the
// broker announced last.
import type { DedupeParameters } from "@claudemesh/protocol/features";
import { safetyMarginHours } from "@claudemesh/protocol/messages/max-age";

const hourMs = 3_600_000;
/** The broker's clock and ours may differ by this much before a conclusion could be wrong. */
const clockSlackMs = hourMs;

export function hoursToMs(hours: number): number {
  return hours * hourMs;
}

/**
 * Rows enqueued at or before this moment are too old for a fence to prove anything: the broker may have accepted the
 * send and forgotten it since. A broker that never forgets leaves no such row.
 */
export function fenceProvesNothingBefore(dedupe: DedupeParameters | undefined, nowMs: number): number {
  if (dedupe === undefined) return nowMs;
  if (dedupe.mode === "permanent") return Number.MIN_SAFE_INTEGER;
  return nowMs - (dedupe.dedupe_retention_days * 24 * hourMs - clockSlackMs);
}

/**
 * Rows enqueued at or before this moment are older than the dedupe window less its margin. What the broker says of them
 * is not enough to send their message again.
 */
export function requeueProvesNothingBefore(dedupe: DedupeParameters | undefined, nowMs: number): number {
  if (dedupe === undefined) return nowMs;
  if (dedupe.mode === "permanent") return Number.MIN_SAFE_INTEGER;
  const days = dedupe.dedupe_retention_days;
  return nowMs - hoursToMs(days * 24 - safetyMarginHours(days));
}

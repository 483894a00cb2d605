// How old an outbox row may be and still be tried: strictly within the broker's dedupe window, so that a retry can
// never arrive after the broker has forgotten the first try. All values are in hours, as in the contract.
import { type DedupeParameters, dedupeRetentionDaysFloor } from "../features/features.ts";

const marginHoursFloor = 24;
const permanentHours = 168;
const permanentHoursCap = 720;

/** Before any negotiation: the value for the shortest window that is allowed. */
export const maxAgeHoursBeforeNegotiation = windowMaxAgeHours(dedupeRetentionDaysFloor);

/** max(24 h, 10 % of the window rounded up). */
export function safetyMarginHours(retentionDays: number): number {
  return Math.max(marginHoursFloor, Math.ceil((retentionDays * 24) / 10));
}

function windowMaxAgeHours(retentionDays: number): number {
  return retentionDays * 24 - safetyMarginHours(retentionDays);
}

export type MaxAge =
  | { readonly ok: true; readonly hours: number }
  | {
      readonly ok: false;
      readonly error: "outbox_max_age_above_dedupe_window";
      readonly overrideHours: number;
      readonly limitHours: number;
    };

/**
 * The age limit from the last negotiation. An override that would exceed the window refuses to start; where there is no
 * window, or none is known yet, the override is limited by a cap.
 */
export function deriveMaxAge(dedupe: DedupeParameters | undefined, overrideHours: number | undefined): MaxAge {
  if (dedupe === undefined) {
    return { ok: true, hours: Math.min(overrideHours ?? Number.POSITIVE_INFINITY, maxAgeHoursBeforeNegotiation) };
  }
  if (dedupe.mode === "permanent") {
    return { ok: true, hours: Math.min(overrideHours ?? permanentHours, permanentHoursCap) };
  }
  const days = dedupe.dedupe_retention_days;
  if (overrideHours === undefined) return { ok: true, hours: windowMaxAgeHours(days) };
  const limitHours = days * 24 - marginHoursFloor;
  return overrideHours > limitHours
    ? { ok: false, error: "outbox_max_age_above_dedupe_window", overrideHours, limitHours }
    : { ok: true, hours: overrideHours };
}

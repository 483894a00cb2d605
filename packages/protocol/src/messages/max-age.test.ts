// How old an outbox row may get: the published numbers, and that no limit ever reaches the end of the window.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type DedupeParameters, dedupeRetentionDaysFloor } from "../features/features.ts";
import { deriveMaxAge, maxAgeHoursBeforeNegotiation, safetyMarginHours } from "./max-age.ts";

interface Vectors {
  margins: { days: number; hours: number }[];
  cases: {
    dedupe: DedupeParameters | null;
    override_hours: number | null;
    hours: number | null;
    limit_hours?: number;
  }[];
}

const vectors: Vectors = JSON.parse(readFileSync(new URL("../../vectors/max-age.json", import.meta.url), "utf8"));

describe("the age limit", () => {
  it.each(vectors.cases)("dedupe $dedupe, override $override_hours h: $hours h", (vector) => {
    const derived = deriveMaxAge(vector.dedupe ?? undefined, vector.override_hours ?? undefined);
    expect(derived).toEqual(
      vector.hours === null
        ? {
            ok: false,
            error: "outbox_max_age_above_dedupe_window",
            overrideHours: vector.override_hours,
            limitHours: vector.limit_hours,
          }
        : { ok: true, hours: vector.hours },
    );
  });

  it.each(vectors.margins)("keeps $hours h away from the end of $days days", ({ days, hours }) => {
    expect(safetyMarginHours(days)).toBe(hours);
  });

  it("before any negotiation is that of the shortest window", () => {
    expect(maxAgeHoursBeforeNegotiation).toBe(144);
    expect(deriveMaxAge(undefined, undefined)).toEqual(
      deriveMaxAge({ mode: "retention_scoped", dedupe_retention_days: dedupeRetentionDaysFloor }, undefined),
    );
  });
});

describe("for any window", () => {
  const days = fc.oneof(
    fc.integer({ min: dedupeRetentionDaysFloor, max: 400 }),
    fc.integer({ min: dedupeRetentionDaysFloor, max: 1_000_000 }),
  );

  it("the derived limit is strictly inside it, by a day and by a tenth at least", () => {
    fc.assert(
      fc.property(days, (dedupe_retention_days) => {
        const derived = deriveMaxAge({ mode: "retention_scoped", dedupe_retention_days }, undefined);
        if (!derived.ok) throw new Error("a derived limit was refused");
        const windowHours = dedupe_retention_days * 24;
        expect(derived.hours).toBeGreaterThan(0);
        expect(windowHours - derived.hours).toBeGreaterThanOrEqual(24);
        expect((windowHours - derived.hours) * 10).toBeGreaterThanOrEqual(windowHours);
        // Rounded up, not further: one hour more of age would break one of the two margins.
        const closer = windowHours - (derived.hours + 1);
        expect(closer >= 24 && closer * 10 >= windowHours).toBe(false);
      }),
      { numRuns: 500 },
    );
  });

  it("an override is taken as it is up to a day before the end, and refused beyond", () => {
    let taken = 0;
    let refused = 0;
    const window = days.chain((dedupe_retention_days) =>
      fc.record({
        dedupe_retention_days: fc.constant(dedupe_retention_days),
        override: fc.integer({ min: 1, max: dedupe_retention_days * 48 }),
      }),
    );
    fc.assert(
      fc.property(window, ({ dedupe_retention_days, override }) => {
        const derived = deriveMaxAge({ mode: "retention_scoped", dedupe_retention_days }, override);
        if (derived.ok) {
          taken += 1;
          expect(derived.hours).toBe(override);
          expect(derived.hours).toBeLessThan(dedupe_retention_days * 24);
        } else {
          refused += 1;
        }
        expect(derived.ok).toBe(override <= dedupe_retention_days * 24 - 24);
      }),
      { numRuns: 500 },
    );
    expect(taken).toBeGreaterThan(50);
    expect(refused).toBeGreaterThan(50);
  });

  it("the limit before negotiation is inside it too, whatever the override", () => {
    fc.assert(
      fc.property(days, fc.option(fc.integer({ min: 1, max: 10_000 }), { nil: undefined }), (window, override) => {
        const derived = deriveMaxAge(undefined, override);
        if (!derived.ok) throw new Error("refused before anything was negotiated");
        expect(derived.hours).toBeLessThan(window * 24);
      }),
      { numRuns: 200 },
    );
  });

  it("a broker that never forgets gets at most thirty days", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000 }), (override) => {
        expect(deriveMaxAge({ mode: "permanent" }, override)).toEqual({ ok: true, hours: Math.min(override, 720) });
      }),
      { numRuns: 200 },
    );
  });
});

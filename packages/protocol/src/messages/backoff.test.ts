// When to try again: the bounds of every delay, its growth, its spread, and what a server asks for.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type BackoffBounds, backoffDelayMs, defaultBackoff } from "./backoff.ts";

const almostOne = 1 - Number.EPSILON / 2;
const attempts = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }));
const random = fc.oneof(fc.constantFrom(0, almostOne), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }));
const bounds: fc.Arbitrary<BackoffBounds> = fc
  .tuple(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 0, max: 1_000_000 }))
  .map(([minMs, more]) => ({ minMs, maxMs: minMs + more }));

describe("the delay before the next try", () => {
  it("is between half a second and a minute by default", () => {
    expect(defaultBackoff).toEqual({ minMs: 500, maxMs: 60_000 });
    fc.assert(
      fc.property(attempts, random, (tries, drawn) => {
        const delayMs = backoffDelayMs(tries, drawn);
        expect(delayMs).toBeGreaterThanOrEqual(500);
        expect(delayMs).toBeLessThanOrEqual(60_000);
      }),
    );
  });

  it("is a whole number within any bounds, for any attempts and any draw", () => {
    fc.assert(
      fc.property(attempts, random, bounds, (tries, drawn, limits) => {
        const delayMs = backoffDelayMs(tries, drawn, limits);
        expect(Number.isSafeInteger(delayMs)).toBe(true);
        expect(delayMs).toBeGreaterThanOrEqual(limits.minMs);
        expect(delayMs).toBeLessThanOrEqual(limits.maxMs);
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    [1, 1_000],
    [2, 2_000],
    [3, 4_000],
    [6, 32_000],
    [7, 60_000],
    [8, 60_000],
    [1_000_000, 60_000],
  ])("after %i failed tries is at most %i ms", (tries, ceilingMs) => {
    expect(backoffDelayMs(tries, 0)).toBe(500);
    expect(backoffDelayMs(tries, almostOne)).toBe(ceilingMs);
  });

  it("uses the whole range, so that a fleet does not return in step", () => {
    const drawn = Array.from({ length: 1_000 }, (_, at) => backoffDelayMs(7, at / 1_000));
    expect(new Set(drawn).size).toBe(1_000);
    expect(drawn).toEqual(drawn.toSorted((left, right) => left - right));
    expect(Math.max(...drawn) - Math.min(...drawn)).toBeGreaterThan(59_000);
  });

  it("never shrinks its ceiling as attempts grow", () => {
    fc.assert(
      fc.property(attempts, bounds, (tries, limits) => {
        expect(backoffDelayMs(tries + 1, almostOne, limits)).toBeGreaterThanOrEqual(
          backoffDelayMs(tries, almostOne, limits),
        );
      }),
    );
  });

  it("is never below what the server asked for, and not otherwise changed by it", () => {
    let asked = 0;
    fc.assert(
      fc.property(attempts, random, bounds, fc.nat({ max: 3_600_000 }), (tries, drawn, limits, retryAfterMs) => {
        const plainMs = backoffDelayMs(tries, drawn, limits);
        if (retryAfterMs > plainMs) asked += 1;
        expect(backoffDelayMs(tries, drawn, limits, retryAfterMs)).toBe(Math.max(plainMs, retryAfterMs));
      }),
      { numRuns: 300 },
    );
    expect(asked).toBeGreaterThan(30);
  });

  it("honours a Retry-After beyond the longest delay of our own", () => {
    expect(backoffDelayMs(1, 0.5, defaultBackoff, 300_000)).toBe(300_000);
  });
});

// What a fuzz run must have shown, and what it must have met to prove anything.
import { expect } from "vitest";
import type { FuzzReport } from "./api-fuzz.ts";

/** `memory`: only a run that is long enough tells growth from warming up. */
export function expectHealthyFuzz(report: FuzzReport, { memory }: { readonly memory: boolean }): void {
  const { requests, passed, statuses, rssBytes, descriptors } = report;
  process.stdout.write(`fuzz: ${JSON.stringify({ requests, passed, statuses, rssBytes, descriptors })}\n`);
  expect(report.failures).toEqual([]);
  expect(passed / requests).toBeGreaterThanOrEqual(0.3);
  expect(requests - passed).toBeGreaterThan(requests / 10);
  const rarely = new Set(["GET /v1/audit"]);
  expect(report.routes.filter((route) => !report.reached.includes(route) && !rarely.has(route))).toEqual([]);
  expect(Math.abs(descriptors.after - descriptors.before)).toBeLessThanOrEqual(5);
  if (memory) expect(rssBytes.after / rssBytes.before).toBeLessThanOrEqual(1.2);
}

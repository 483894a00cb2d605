// However refusals fall in time, each is written or counted, and a window writes no more than its share.
import fc from "fast-check";
import { expect, test } from "vitest";
import { type AuditWindow, auditRowsPerWindow, auditWindowMs, countRefusal } from "./audit-window.ts";

test("every refusal is written, in a summary, or still counted; and no minute writes more than its rows (REG-7)", () => {
  const gaps = fc.array(fc.oneof(fc.nat(50), fc.nat(2 * auditWindowMs), fc.integer({ min: -auditWindowMs, max: 0 })), {
    minLength: 1,
    maxLength: 400,
    size: "max",
  });
  fc.assert(
    fc.property(gaps, (spans) => {
      let window: AuditWindow | undefined;
      let nowMs = 1_000_000_000;
      let written = 0;
      let summarised = 0;
      for (const span of spans) {
        nowMs += span;
        const step = countRefusal(window, nowMs);
        written += step.write ? 1 : 0;
        summarised += step.summarise;
        window = step.window;
        expect(window.written).toBeLessThanOrEqual(auditRowsPerWindow);
      }
      expect(written + summarised + (window?.suppressed ?? 0)).toBe(spans.length);
    }),
  );
});

// Spans of time as people write them on a command line.
import { InvalidArgumentError } from "commander";

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export function parseWait(text: string): number {
  const [, count, unit] = /^([0-9]{1,9})(ms|s|m|h)$/.exec(text) ?? [];
  const ms = Number(count) * (unitMs[unit ?? ""] ?? Number.NaN);
  if (!(ms > 0 && ms <= 86_400_000)) throw new InvalidArgumentError("It takes a time such as 500ms, 30s, 5m or 1h.");
  return ms;
}

/** A time during which something is good: a year at most. */
export function parseValidity(text: string): number {
  const [, count, unit] = /^([0-9]{1,9})(s|m|h|d)$/.exec(text) ?? [];
  const ms = Number(count) * (unitMs[unit ?? ""] ?? Number.NaN);
  if (!(ms > 0 && ms <= 366 * 86_400_000)) throw new InvalidArgumentError("It takes a time such as 30m, 1h or 7d.");
  return ms;
}

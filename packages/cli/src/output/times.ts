// Times as people read them: local, with how long ago where there is room for it, or as ISO 8601 in UTC.

import type { Cell } from "./cell.ts";
import { currentDisplay } from "./display.ts";

/** For sentences and lines. */
export function formatTime(ms: number): string {
  return currentDisplay().utc ? `${new Date(ms).toISOString().slice(0, 19)}Z` : localTime(new Date(ms));
}

/** For tables, which leave the relative part out where they do not fit otherwise. */
export function timeCell(ms: number | null | undefined, absent = "-"): Cell {
  if (ms === null || ms === undefined) return absent;
  const { utc, nowMs } = currentDisplay();
  const text = formatTime(ms);
  return utc ? text : { text, more: ` (${relativeTime(ms, nowMs())})` };
}

function localTime(date: Date): string {
  const two = (part: number) => String(part).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

const units: readonly (readonly [number, string])[] = [
  [172_800_000, "days"],
  [3_600_000, "h"],
  [60_000, "min"],
];
const unitMs: Readonly<Record<string, number>> = { days: 86_400_000, h: 3_600_000, min: 60_000 };

/** Rounded down: what is two minutes and more ago, and less than three, was 2 min ago. */
export function relativeTime(ms: number, nowMs: number): string {
  const distance = Math.abs(nowMs - ms);
  const unit = units.find(([fromMs]) => distance >= fromMs)?.[1];
  const amount =
    unit === undefined ? `${Math.floor(distance / 1_000)} s` : `${Math.floor(distance / (unitMs[unit] ?? 1))} ${unit}`;
  return ms > nowMs ? `in ${amount}` : `${amount} ago`;
}

import { afterEach, beforeEach, describe, expect, it, test } from "vitest";
import { setDisplay } from "./display.ts";
import { formatTime, relativeTime, timeCell } from "./times.ts";

const at = Date.UTC(2030, 0, 31, 22, 0, 5, 999);
const zone = process.env.TZ;

beforeEach(() => {
  process.env.TZ = "Asia/Kolkata";
});

afterEach(() => {
  process.env.TZ = zone;
  setDisplay({});
});

describe("a time", () => {
  it("is local to the second, with its distance beside it", () => {
    setDisplay({ nowMs: () => at + 120_000 });
    expect(formatTime(at)).toBe("2030-02-01 03:30:05");
    expect(timeCell(at)).toEqual({ text: "2030-02-01 03:30:05", more: " (2 min ago)" });
  });

  it("is ISO 8601 in UTC where that was asked for, with nothing beside it", () => {
    setDisplay({ utc: true });
    expect([formatTime(at), timeCell(at)]).toEqual(["2030-01-31T22:00:05Z", "2030-01-31T22:00:05Z"]);
  });

  it("that never was is said so", () => {
    expect([timeCell(null), timeCell(undefined, "none")]).toEqual(["-", "none"]);
  });
});

test.each([
  [0, "0 s ago"],
  [-59_999, "59 s ago"],
  [-60_000, "1 min ago"],
  [-3_599_999, "59 min ago"],
  [-3_600_000, "1 h ago"],
  [-172_799_999, "47 h ago"],
  [-172_800_000, "2 days ago"],
  [-864_000_000, "10 days ago"],
  [1, "in 0 s"],
  [90_000, "in 1 min"],
  [604_800_000, "in 7 days"],
])("%i ms from now is %s", (distance, words) => {
  expect(relativeTime(at + distance, at)).toBe(words);
});

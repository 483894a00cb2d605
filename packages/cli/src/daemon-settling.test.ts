// When a start has settled: what is waited for where a daemon knows several brokers.
import { expect, it } from "vitest";
import { describeBroker, isHopeless, isSettled } from "./daemon-settling.ts";

it("names the command that mends what waiting does not", () => {
  const away = { state: "offline", reason: "unreachable", detail: "refused" } as const;
  const other = { state: "offline", reason: "not_our_broker", detail: "it has another key" } as const;
  const settled = (broker: typeof away | typeof other, isFormerMember = false) => ({ broker, isFormerMember });
  expect(describeBroker(settled(away))).not.toContain("claudemesh");
  const formerly = describeBroker(settled(away, true));
  expect(formerly).toContain("claudemesh daemon remint");
  expect(formerly, "of sends that are refused").not.toContain("kept");
  expect([isHopeless(settled(away)), isHopeless(settled(away, true))]).toEqual([false, true]);
  expect(describeBroker(settled(other))).toContain("claudemesh mesh trust-broker");
});

it("takes the first word of the only broker, and asks all of several before it says that none is there", () => {
  const away = { state: "offline", reason: "unreachable" } as const;
  expect(isSettled({ state: "connecting" }, 100)).toBe(false);
  expect(isSettled({ state: "online" }, 100)).toBe(true);
  expect(isSettled({ ...away, others: [] }, 100)).toBe(true);
  const several = { ...away, others: ["http://127.0.0.1:2", "http://127.0.0.1:3"] };
  expect(isSettled(several, 1_900)).toBe(false);
  expect(isSettled(several, 4_000)).toBe(true);
  expect(isSettled({ ...away, others: Array.from({ length: 15 }, (_, n) => `http://127.0.0.1:${n}`) }, 12_000)).toBe(
    true,
  );
  expect(isSettled({ state: "connecting" }, 12_000)).toBe(true);
});

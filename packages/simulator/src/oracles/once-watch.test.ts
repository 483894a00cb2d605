// That an effect which happens twice, a result that changes and a key that frees itself are found; by traces made by hand.
import type { OnceEpoch } from "@claudemesh/protocol/registrar/once-state";
import { beforeEach, expect, test } from "vitest";
import { OnceWatch } from "./once-watch.ts";

let watch: OnceWatch;

beforeEach(() => {
  watch = new OnceWatch();
});

const epoch = (number: number, settlement?: OnceEpoch["settlement"], claimId = `c${number}`): OnceEpoch => ({
  epoch: number,
  claimId,
  holder: "h",
  inputsFingerprint: "",
  leaseSeconds: 10,
  claimedAtMs: 0,
  leaseUntilMs: 10,
  settlement,
});
const done = (result: string) => ({ how: "recorded", by: "h", atMs: 1, result }) as const;
const notDone = { how: "resolved_not_done", by: "x", atMs: 1 } as const;

test("there is nothing wrong with a key that is done once and reported as it is", () => {
  watch.noteStored("k", [epoch(1)]);
  watch.heard("once.claim", "k", { claim_id: "c1" }, { status: 201, body: { epoch: 1 } });
  watch.outside.perform("k", 1);
  watch.noteStored("k", [epoch(1, done("1"))]);
  watch.heard("once.claim", "k", {}, { status: 200, body: { epoch: 1, result: 1 } });
  watch.check();
  expect(watch.tally).toMatchObject({ epochs: 1, done: 1 });
});

test("a second epoch without a not_done, and an epoch of two claims, are found", () => {
  watch.noteStored("k", [epoch(1)]);
  expect(() => watch.noteStored("k", [epoch(1), epoch(2)])).toThrow(/once_broken: .* never said to be not done/);
  watch.noteStored("l", [epoch(1)]);
  const given = { status: 201, body: { epoch: 1 } };
  expect(() => watch.heard("once.claim", "l", { claim_id: "other" }, given)).toThrow(/once_broken/);
});

test("a result that changes, or that was never stored, is found", () => {
  watch.noteStored("k", [epoch(1, done("1"))]);
  expect(() => watch.noteStored("k", [epoch(1, done("2"))])).toThrow(/a result changed/);
  expect(() => watch.checkResult("l", 1)).toThrow(/once_broken/);
  watch.noteStored("m", [epoch(1)]);
  expect(() => watch.heard("once.record", "m", {}, { status: 200, body: { epoch: 1 } })).toThrow(/not stored so/);
});

test("what happened outside is what the key says", () => {
  watch.noteStored("k", [epoch(1, notDone)]);
  watch.outside.perform("k", 1);
  expect(() => watch.check()).toThrow(/resolved_not_done, and its effect happened/);
  const other = new OnceWatch();
  other.outside.perform("k", 1);
  other.outside.perform("k", 2);
  expect(() => other.check()).toThrow(/happened 2 times/);
});

test("an epoch that was declared over does nothing any more", () => {
  expect(watch.outside.fence("k", 1)).toBe(true);
  expect(watch.outside.perform("k", 1)).toBe(false);
  expect(watch.outside.perform("k", 2)).toBe(true);
  expect(watch.outside.fence("k", 2)).toBe(false);
});

// That verdicts which change, and tokens that outlive their time, are found; by traces made by hand.
import { beforeEach, expect, test } from "vitest";
import { SessionWatch } from "./session-watch.ts";

let watch: SessionWatch;

beforeEach(() => {
  watch = new SessionWatch();
});

const opened = (sessionToken: string) => ({ status: 200, body: { sessionId: "s", sessionToken } });
const accepted = (seq: number, replayed = false) => ({
  status: 200,
  body: { seq, resolvedPendingReads: [], replayed },
});
const refused = (error: string, status = 409) => ({ status, body: { error } });
const write = (payload = "a", sessionToken = "t", localSeq = 1) =>
  watch.writing({ sessionId: "s", sessionToken, localSeq }, payload);

test("an exact retry gets the verdict that it got", () => {
  write()(accepted(5));
  write()(accepted(5, true));
  write()(refused("storage_unavailable", 503));
  expect(() => write()(accepted(6, true))).toThrow(/verdict_wrong/);
});

test("a rejection stays one, and is not forgotten", () => {
  write()(refused("conflict_error"));
  write()(refused("conflict_error"));
  expect(() => write()(accepted(5))).toThrow(/verdict_wrong/);
  expect(() => write()(refused("local_seq_passed_error"))).toThrow(/verdict_wrong/);
});

test("other content under a number gets no verdict", () => {
  write()(accepted(5));
  write("b")(refused("replay_mismatch_error"));
  expect(watch.tally.mismatched).toBe(1);
  expect(() => write("b")(accepted(5, true))).toThrow(/verdict_wrong/);
  expect(() => write()(refused("replay_mismatch_error"))).toThrow(/verdict_wrong/);
});

test("a token is worth nothing once a later open was answered", () => {
  watch.opening()(opened("t"));
  const underWay = write();
  watch.opening()(opened("u"));
  underWay(accepted(1));
  write("b", "t", 2)(refused("session_revoked_error", 403));
  expect(() => write("b", "t", 2)(accepted(2))).toThrow(/session_stolen/);
  write("b", "u", 2)(accepted(2));
  expect(() => watch.opening()(opened("t"))).toThrow(/session_stolen/);
});

test("of two opens that crossed, neither is known to be the older", () => {
  const [first, second] = [watch.opening(), watch.opening()];
  second(opened("u"));
  first(opened("t"));
  write("a", "u", 1)(accepted(1));
  write("b", "t", 2)(accepted(2));
});

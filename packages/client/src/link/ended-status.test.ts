import { describe, expect, it } from "vitest";
import { failuresAfterEnd, statusAfterClose, statusAfterRefusedHello } from "./ended-status.ts";

describe("failuresAfterEnd", () => {
  it("counts on while connections fail or are dropped soon, and begins anew after one that held", () => {
    expect(failuresAfterEnd(0, undefined, 5_000)).toBe(1);
    expect(failuresAfterEnd(3, undefined, 5_000)).toBe(4);
    expect(failuresAfterEnd(3, 4_999, 5_000)).toBe(4);
    expect(failuresAfterEnd(3, 5_000, 5_000)).toBe(1);
  });
});

describe("statusAfterClose", () => {
  it("tells a socket that never opened from one that was lost", () => {
    const close = { code: 1006, reason: "", error: "connect ECONNREFUSED", believed: true };
    expect(statusAfterClose({ ...close, opened: false })).toEqual({
      state: "offline",
      reason: "unreachable",
      detail: "connect ECONNREFUSED",
    });
    expect(statusAfterClose({ ...close, opened: true })).toMatchObject({ reason: "lost" });
  });
});

describe("statusAfterRefusedHello", () => {
  it("takes the end of a membership from our broker alone, because it is remembered over restarts", () => {
    const body = { error: "unauthorized", message: "no", retryable: false, membership: "ended" };
    expect(statusAfterRefusedHello(401, body, true)).toMatchObject({ state: "offline", reason: "member_revoked" });
    expect(statusAfterRefusedHello(401, body, false)).toMatchObject({ state: "offline", reason: "unauthorized" });
  });
});

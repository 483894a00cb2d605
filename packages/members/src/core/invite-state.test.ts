import { describe, expect, test } from "vitest";
import { inviteStateOf } from "./invite-state.ts";

const fresh = { expiresAt: 100, usedBy: undefined, revokedAt: undefined, madeByOwner: true };

describe("an invite", () => {
  test("is live until it is used, revoked or expired, or its maker is no owner", () => {
    expect(inviteStateOf(fresh, 99)).toBe("live");
    expect(inviteStateOf(fresh, 100)).toBe("expired");
    expect(inviteStateOf({ ...fresh, revokedAt: 5 }, 10)).toBe("revoked");
    expect(inviteStateOf({ ...fresh, usedBy: "b" }, 10)).toBe("used");
    expect(inviteStateOf({ ...fresh, madeByOwner: false }, 10)).toBe("void");
  });

  test("that was used stays so, whatever came later", () => {
    expect(inviteStateOf({ ...fresh, usedBy: "b", madeByOwner: false }, 1_000)).toBe("used");
    expect(inviteStateOf({ ...fresh, revokedAt: 5 }, 1_000)).toBe("revoked");
  });
});

import { describe, expect, it } from "vitest";
import { chooseIdentity, type IdentityFacts, type IdentityWish } from "./daemon-identity.ts";

const invite = { broker: "ws://b", mesh: "acme", mesh_id: "m", secret: "s" };
const nothing: IdentityWish = {
  persistent: false,
  ephemeral: false,
  invite: undefined,
  ttlMs: undefined,
  name: undefined,
};
const choose = (wish: Partial<IdentityWish>, facts: Partial<IdentityFacts> = {}) =>
  chooseIdentity({ ...nothing, ...wish }, { ciVariable: undefined, hasKeys: false, ...facts });

describe("a daemon is", () => {
  it("the member of its home, on build machines too", () => {
    expect(choose({}, { hasKeys: true })).toEqual({ type: "kept" });
    expect(choose({}, { hasKeys: true, ciVariable: "CI" })).toEqual({ type: "kept" });
    expect(choose({}, { ciVariable: "CI" })).toEqual({ type: "kept" });
  });

  it("ephemeral where that is asked for, by an invite", () => {
    expect(choose({ ephemeral: true, invite })).toEqual({ type: "ephemeral", invite, because: undefined });
    expect(choose({ ephemeral: true, invite, ttlMs: 5, name: "n" })).toMatchObject({ type: "ephemeral" });
  });

  it("ephemeral on a build machine that has an invite and no keys, and says why", () => {
    expect(choose({ invite, ttlMs: 5 }, { ciVariable: "GITLAB_CI" })).toEqual({
      type: "ephemeral",
      invite,
      because: "GITLAB_CI",
    });
  });

  it("never ephemeral by default where the home holds keys", () => {
    expect(choose({ invite }, { ciVariable: "CI", hasKeys: true })).toEqual({ type: "kept" });
  });

  it("persistent where that is asked for, and joins first where it has no keys", () => {
    expect(choose({ persistent: true, invite }, { ciVariable: "CI" })).toEqual({ type: "joins", invite });
    expect(choose({ persistent: true, invite }, { ciVariable: "CI", hasKeys: true })).toEqual({ type: "kept" });
    expect(choose({ invite })).toEqual({ type: "joins", invite });
  });
});

describe("a contradiction is", () => {
  it.each([
    ["an ephemeral daemon without an invite", { ephemeral: true }, "--invite"],
    ["a time to live of a daemon that stays", { persistent: true, invite, ttlMs: 5 }, "--ephemeral"],
    ["a time to live without an invite", { ttlMs: 5 }, "--ephemeral"],
    ["a name for a member that does not join", { name: "n" }, "--invite"],
  ])("%s", (_, wish, says) => {
    expect(choose(wish)).toEqual({ type: "contradiction", message: expect.stringContaining(says) });
  });
});

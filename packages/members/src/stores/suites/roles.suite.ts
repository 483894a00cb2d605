// Changing a role: who may, what is never left without, and what a former owner can still do.
import { expect, test } from "vitest";
import { hashSecret } from "../../core/credentials.ts";
import type { Member, MembersStore, Mesh, Role } from "../../ports.ts";
import { createInvite } from "../../services/join-mesh.ts";
import { setRole } from "../../services/set-role.ts";

const nowMs = 1_700_000_000_000;
const mesh: Mesh = { id: "018bcfe5-6800-7000-8000-000000000001", name: "acme" };
const alice = { pubkey: "a".repeat(64), name: "alice" };
const bob = { pubkey: "b".repeat(64), name: "bob" };
const carol = { pubkey: "c".repeat(64), name: "carol" };

export function describeRoles(store: () => MembersStore): void {
  let ids = 0;
  const ports = () => ({ store: store(), nowMs: () => nowMs, nextId: () => `invite-${++ids}` });
  const change = (by: { pubkey: string }, of: { pubkey: string }, role: Role) =>
    store().setRole(mesh.id, by.pubkey, of.pubkey, role);
  const roleOf = async ({ pubkey }: { pubkey: string }) => (await store().findMember(mesh.id, pubkey))?.role;

  async function start(): Promise<Member> {
    const outcome = await store().createMesh(mesh, alice, nowMs);
    if (outcome.type !== "created") throw new Error("the database was not empty");
    for (const newcomer of [bob, carol]) await join(outcome.owner, newcomer);
    return outcome.owner;
  }

  async function join(owner: Member, newcomer: { pubkey: string; name: string }) {
    const { secret } = await createInvite(ports(), owner);
    return store().join(mesh.id, hashSecret(secret), newcomer, nowMs);
  }

  test("by an owner makes owners and members of members; again, nothing more happens", async () => {
    await start();
    expect(await change(alice, bob, "owner")).toBe("changed");
    expect(await change(alice, bob, "owner")).toBe("unchanged");
    expect(await change(bob, alice, "member")).toBe("changed");
    expect([await roleOf(alice), await roleOf(bob)]).toEqual(["member", "owner"]);
  });

  test("by a plain member, or of an unknown or former member, is refused and changes nothing", async () => {
    const owner = await start();
    expect(await change(bob, bob, "owner")).toBe("not_an_owner");
    expect(await change(bob, carol, "member")).toBe("not_an_owner");
    expect(await change({ pubkey: "no_member" }, { pubkey: "no_member" }, "owner")).toBe("not_an_owner");
    expect(await change(alice, { pubkey: "no_member" }, "owner")).toBe("not_found");
    await store().revokeMember(mesh.id, owner.pubkey, carol.pubkey, nowMs);
    expect(await change(alice, carol, "owner")).toBe("not_found");
    expect(await change(carol, carol, "member")).toBe("not_an_owner");
    await expect(setRole(store(), owner, carol.pubkey, "owner")).rejects.toMatchObject({ code: "not_found" });
    expect(await roleOf(bob)).toBe("member");
  });

  test("leaves a mesh an owner, also when two step down at once", async () => {
    const owner = await start();
    expect(await change(alice, alice, "member")).toBe("last_owner");
    await expect(setRole(store(), owner, alice.pubkey, "member")).rejects.toMatchObject({ code: "last_owner" });
    await change(alice, bob, "owner");
    const outcomes = await Promise.all([change(alice, alice, "member"), change(bob, bob, "member")]);
    expect(outcomes.toSorted()).toEqual(["changed", "last_owner"]);
  });

  test("of an owner that steps down is answered again when the answer was lost", async () => {
    const owner = await start();
    await change(alice, bob, "owner");
    expect(await change(alice, alice, "member")).toBe("changed");
    expect(await change(alice, alice, "member")).toBe("unchanged");
    await expect(setRole(store(), owner, alice.pubkey, "owner")).rejects.toMatchObject({ code: "forbidden" });
  });

  test("ends the unused invites of a former owner", async () => {
    const owner = await start();
    await change(alice, bob, "owner");
    const { secret } = await createInvite(ports(), owner);
    await change(bob, alice, "member");
    const dave = { pubkey: "d".repeat(64), name: "dave" };
    expect(await store().join(mesh.id, hashSecret(secret), dave, nowMs)).toEqual({ type: "refused" });
  });
}

// The invites of a mesh as its owners see them, and what revoking one means to a key that joins by it.
import { expect, test } from "vitest";
import { hashSecret } from "../../core/credentials.ts";
import type { Member, MembersStore, Mesh } from "../../ports.ts";
import { createInvite } from "../../services/join-mesh.ts";
import { listInvites, revokeInvite } from "../../services/manage-invites.ts";

const nowMs = 1_700_000_000_000;
const mesh: Mesh = { id: "018bcfe5-6800-7000-8000-000000000001", name: "acme" };
const other: Mesh = { id: "018bcfe5-6800-7000-8000-000000000002", name: "other" };
const alice = { pubkey: "a".repeat(64), name: "alice" };
const bob = { pubkey: "b".repeat(64), name: "bob" };
const carol = { pubkey: "c".repeat(64), name: "carol" };

export function describeManagedInvites(store: () => MembersStore): void {
  let ids = 0;
  const ports = (at = nowMs) => ({ store: store(), nowMs: () => at, nextId: () => `invite-${++ids}` });
  const join = (secret: string, member: typeof bob) => store().join(mesh.id, hashSecret(secret), member, nowMs + 1);
  const revoke = (by: { pubkey: string }, id: string, at = nowMs) => store().revokeInvite(mesh.id, by.pubkey, id, at);
  const listed = async (owner: Member, at = nowMs) => (await listInvites(ports(at), owner, "", 100)).items;

  async function start(): Promise<Member> {
    ids = 0;
    const outcome = await store().createMesh(mesh, alice, nowMs);
    if (outcome.type !== "created") throw new Error("the database was not empty");
    return outcome.owner;
  }

  test("are listed to an owner with what became of them, and without their secrets", async () => {
    const owner = await start();
    const [used, revoked, expired, live] = [
      await createInvite(ports(), owner, { lifetimeSeconds: 3_600 }),
      await createInvite(ports(), owner, { lifetimeSeconds: 3_600 }),
      await createInvite(ports(), owner, { lifetimeSeconds: 60 }),
      await createInvite(ports(), owner, { lifetimeSeconds: 3_600 }),
    ];
    await join(used.secret, bob);
    await revoke(alice, revoked.id, nowMs + 2);
    const common = { createdBy: alice.pubkey, createdAt: nowMs, expiresAt: nowMs + 3_600_000, madeByOwner: true };
    const unused = { usedBy: undefined, usedAt: undefined, revokedAt: undefined };
    expect(await listed(owner, nowMs + 60_000)).toEqual([
      { id: used.id, ...common, ...unused, usedBy: bob.pubkey, usedAt: nowMs + 1, state: "used" },
      { id: revoked.id, ...common, ...unused, revokedAt: nowMs + 2, state: "revoked" },
      { id: expired.id, ...common, ...unused, expiresAt: nowMs + 60_000, state: "expired" },
      { id: live.id, ...common, ...unused, state: "live" },
    ]);
  });

  test("are listed page by page, of one mesh alone, and to no plain member", async () => {
    const owner = await start();
    await store().createMesh(other, alice, nowMs);
    await createInvite(ports(), { ...owner, meshId: other.id });
    const { secret } = await createInvite(ports(), owner);
    for (let more = 0; more < 2; more++) await createInvite(ports(), owner);
    const first = await listInvites(ports(), owner, "", 2);
    expect(first.items.map(({ id }) => id)).toEqual(["invite-2", "invite-3"]);
    const second = await listInvites(ports(), owner, first.nextCursor ?? "", 2);
    expect([second.items.map(({ id }) => id), second.nextCursor]).toEqual([["invite-4"], undefined]);
    const joined = await join(secret, bob);
    if (joined.type !== "joined") throw new Error("the invite was refused");
    await expect(listInvites(ports(), joined.member, "", 2)).rejects.toMatchObject({ code: "forbidden" });
  });

  test("of a former owner are void, and live again when it is an owner again", async () => {
    const owner = await start();
    const { secret } = await createInvite(ports(), owner);
    await createInvite(ports(), owner);
    await join(secret, bob);
    await store().setRole(mesh.id, alice.pubkey, bob.pubkey, "owner");
    await store().setRole(mesh.id, bob.pubkey, alice.pubkey, "member");
    expect((await listed(owner)).map(({ state }) => state)).toEqual(["used", "void"]);
    await store().setRole(mesh.id, bob.pubkey, alice.pubkey, "owner");
    expect((await listed(owner)).map(({ state }) => state)).toEqual(["used", "live"]);
  });

  test("admit no key once they are revoked; revoking again changes nothing", async () => {
    const owner = await start();
    const { id, secret } = await createInvite(ports(), owner);
    expect(await revoke(alice, id, nowMs + 5)).toEqual({ type: "revoked" });
    expect(await revoke(alice, id, nowMs + 9)).toEqual({ type: "already_revoked" });
    await revokeInvite(ports(), owner, id);
    expect(await listed(owner)).toMatchObject([{ revokedAt: nowMs + 5 }]);
    expect(await join(secret, bob)).toEqual({ type: "refused" });
    // Not even that it was an invite is told to a member who shows it.
    expect(await join(secret, alice)).toEqual({ type: "refused" });
  });

  test("are revoked by owners alone, and those that are not there are not found", async () => {
    const owner = await start();
    const [first, second] = [await createInvite(ports(), owner), await createInvite(ports(), owner)];
    await join(first.secret, bob);
    expect(await revoke(bob, second.id)).toEqual({ type: "not_an_owner" });
    expect(await revoke(carol, second.id)).toEqual({ type: "not_an_owner" });
    expect(await revoke(alice, "none")).toEqual({ type: "not_found" });
    expect(await store().revokeInvite(other.id, alice.pubkey, second.id, nowMs)).toEqual({ type: "not_an_owner" });
    await expect(revokeInvite(ports(), { ...owner, ...bob }, second.id)).rejects.toMatchObject({ code: "forbidden" });
    await expect(revokeInvite(ports(), owner, "none")).rejects.toMatchObject({ code: "not_found" });
    expect(await join(second.secret, carol)).toMatchObject({ type: "joined" });
  });

  test("that were used say so when they are revoked, and the membership stays", async () => {
    const owner = await start();
    const { id, secret } = await createInvite(ports(), owner);
    await join(secret, bob);
    expect(await revoke(alice, id)).toEqual({ type: "used", by: bob.pubkey });
    const details = { invite_id: id, used_by: bob.pubkey };
    await expect(revokeInvite(ports(), owner, id)).rejects.toMatchObject({ code: "invite_used", details });
    expect(await join(secret, bob)).toMatchObject({ type: "already_member", member: { revoked: false } });
    expect((await listed(owner)).map(({ state }) => state)).toEqual(["used"]);
  });

  test("that are joined by while they are revoked are used or revoked, never both", async () => {
    const owner = await start();
    for (let round = 0; round < 8; round++) {
      const { id, secret } = await createInvite(ports(), owner);
      const member = { pubkey: String(round).repeat(64), name: `racer-${round}` };
      const [first, second] =
        round % 2 === 0 ? [revoke(alice, id), join(secret, member)] : [join(secret, member), revoke(alice, id)];
      const outcomes = [(await first).type, (await second).type].toSorted();
      expect([
        ["joined", "used"],
        ["refused", "revoked"],
      ]).toContainEqual(outcomes);
      const isMember = (await store().findMember(mesh.id, member.pubkey)) !== undefined;
      expect(isMember).toBe(outcomes.includes("joined"));
    }
  });
}

// Ending a membership: who may, what ends with it, and what a repetition finds.
import { expect, test } from "vitest";
import { hashSecret, hashToken } from "../../core/credentials.ts";
import type { Member, MembersStore, Mesh } from "../../ports.ts";
import { createInvite } from "../../services/join-mesh.ts";
import { authenticateTokenHash, createToken } from "../../services/member-tokens.ts";
import { revokeMember } from "../../services/revoke-member.ts";

const nowMs = 1_700_000_000_000;
const mesh: Mesh = { id: "018bcfe5-6800-7000-8000-000000000001", name: "acme" };
const alice = { pubkey: "a".repeat(64), name: "alice" };
const bob = { pubkey: "b".repeat(64), name: "bob" };
const carol = { pubkey: "c".repeat(64), name: "carol" };

export function describeRevocation(store: () => MembersStore): void {
  let ids = 0;
  const ports = () => ({ store: store(), nowMs: () => nowMs, nextId: () => `token-${++ids}` });

  async function start(): Promise<{ owner: Member; member: Member }> {
    const outcome = await store().createMesh(mesh, alice, nowMs);
    if (outcome.type !== "created") throw new Error("the database was not empty");
    return { owner: outcome.owner, member: await join(outcome.owner, bob) };
  }

  async function join(owner: Member, newcomer: { pubkey: string; name: string }): Promise<Member> {
    const { secret } = await createInvite(ports(), owner);
    const outcome = await store().join(mesh.id, hashSecret(secret), newcomer, nowMs);
    if (outcome.type !== "joined") throw new Error("the invite was refused");
    return outcome.member;
  }

  const revoke = (by: string, pubkey: string) => store().revokeMember(mesh.id, by, pubkey, nowMs);
  const codeOf = (work: Promise<unknown>) =>
    work.then(
      () => "no failure",
      (error: { code?: unknown }) => error.code,
    );

  test("by an owner ends a membership and all its tokens; again, nothing more happens", async () => {
    const { owner, member } = await start();
    const tokens = [await createToken(ports(), member, "a"), await createToken(ports(), member, "b")];
    expect(await revoke(owner.pubkey, member.pubkey)).toBe("revoked");
    expect(await revoke(owner.pubkey, member.pubkey)).toBe("already_revoked");
    expect(await store().findMember(mesh.id, member.pubkey)).toEqual({ ...member, revoked: true });
    for (const { token } of tokens) {
      expect(await codeOf(authenticateTokenHash(ports(), mesh.id, hashToken(token)))).toBe("unauthorized");
    }
    const listed = await store().listTokens(mesh.id, member.pubkey, "", 10);
    expect(listed.items.map(({ revokedAt }) => revokedAt)).toEqual([nowMs, nowMs]);
    await revokeMember(ports(), owner, member.pubkey);
  });

  test("leaves every other member as it was", async () => {
    const { owner, member } = await start();
    const other = await join(owner, carol);
    const { token } = await createToken(ports(), other, "");
    await revoke(owner.pubkey, member.pubkey);
    expect(await store().findMember(mesh.id, other.pubkey)).toEqual(other);
    expect(await authenticateTokenHash(ports(), mesh.id, hashToken(token))).toMatchObject({ member: other });
    expect(await store().findRevoked(mesh.id, [alice.pubkey, bob.pubkey, carol.pubkey, "no_member"])).toEqual([
      bob.pubkey,
      "no_member",
    ]);
    expect(await store().findRevoked(mesh.id, [])).toEqual([]);
  });

  test("by anyone but a live owner of the mesh is refused and changes nothing", async () => {
    const { member, owner } = await start();
    const other = await join(owner, carol);
    expect(await revoke(member.pubkey, other.pubkey)).toBe("not_an_owner");
    expect(await revoke("no_member", other.pubkey)).toBe("not_an_owner");
    expect(await codeOf(revokeMember(ports(), member, other.pubkey))).toBe("forbidden");
    // Who was an owner when the request began and is none when its turn comes.
    expect(await codeOf(revokeMember(ports(), { ...member, role: "owner" }, other.pubkey))).toBe("unauthorized");
    expect(await store().findRevoked(mesh.id, [other.pubkey])).toEqual([]);
  });

  test("of the last owner, or of a key that is no member, is refused", async () => {
    const { owner } = await start();
    expect(await revoke(owner.pubkey, owner.pubkey)).toBe("last_owner");
    expect(await codeOf(revokeMember(ports(), owner, owner.pubkey))).toBe("last_owner");
    expect(await revoke(owner.pubkey, carol.pubkey)).toBe("not_found");
    expect(await codeOf(revokeMember(ports(), owner, carol.pubkey))).toBe("not_found");
    expect(await store().findMember(mesh.id, owner.pubkey)).toEqual(owner);
  });

  test("is final: the key does not come back, neither by its old invite nor by a new one", async () => {
    const { owner, member } = await start();
    await revoke(owner.pubkey, member.pubkey);
    const { secret } = await createInvite(ports(), owner);
    expect(await store().join(mesh.id, hashSecret(secret), bob, nowMs)).toEqual({ type: "refused" });
    expect(await store().join(mesh.id, hashSecret(secret), carol, nowMs)).toMatchObject({ type: "joined" });
  });

  test("of the member that made an invite ends the invite, and not the memberships that came of it", async () => {
    const { owner, member } = await start();
    await store().setRole(mesh.id, owner.pubkey, member.pubkey, "owner");
    const [spent, open] = [hashSecret("spent"), hashSecret("open")];
    const expiresAt = nowMs + 60_000;
    for (const [at, secretHash] of [spent, open].entries()) {
      await store().addInvite(mesh.id, { id: `i${at}`, secretHash, createdBy: member.pubkey, expiresAt }, nowMs);
    }
    await store().join(mesh.id, spent, carol, nowMs);
    await revoke(owner.pubkey, member.pubkey);
    const dave = { pubkey: "d".repeat(64), name: "dave" };
    expect(await store().join(mesh.id, open, dave, nowMs)).toEqual({ type: "refused" });
    expect(await store().join(mesh.id, spent, carol, nowMs)).toMatchObject({ type: "already_member" });
  });

  test("asked for by many at once happens once", async () => {
    const { owner, member } = await start();
    const outcomes = await Promise.all(Array.from({ length: 6 }, () => revoke(owner.pubkey, member.pubkey)));
    expect(outcomes.toSorted()).toEqual([...Array(5).fill("already_revoked"), "revoked"]);
  });
}

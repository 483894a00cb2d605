// Names of a mesh: no two members get the same, whatever its case, former members included (MSG-28).
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { joinBytes } from "@claudemesh/protocol/wire/signing";
import { expect, test } from "vitest";
import { createPeerKeys } from "../../../../../tests/support/peer-keys.ts";
import type { Member, MembersStore } from "../../ports.ts";
import { createInvite, type InviteTerms, joinMesh } from "../../services/join-mesh.ts";
import { revokeMember } from "../../services/revoke-member.ts";

const nowMs = 1_700_000_000_000;
const nextId = createUuidV7Generator({ nowMs: () => nowMs, randomBytes: (length) => new Uint8Array(length) });

export function describeNames(storeOf: () => MembersStore): void {
  const ports = () => ({ store: storeOf(), nowMs: () => nowMs, nextId });

  async function start(): Promise<Member> {
    const created = await storeOf().createMesh(
      { id: nextId(), name: "acme" },
      { pubkey: "a".repeat(64), name: "Alice" },
      nowMs,
    );
    if (created.type !== "created") throw new Error("the database was not empty");
    return created.owner;
  }

  const inviteBy = async (owner: Member, terms: InviteTerms = {}) => (await createInvite(ports(), owner, terms)).secret;

  async function join(owner: Member, secret: string, name: string | undefined, keys = createPeerKeys()) {
    const mesh = await storeOf().findMesh(owner.meshId);
    const signed = joinBytes({ mesh_id: owner.meshId, secret, name: name ?? "", pubkey: keys.pubkey });
    const request = { secret, pubkey: keys.pubkey, signature: keys.sign(signed), ...(name !== undefined && { name }) };
    return joinMesh(ports(), mesh, request).then(
      ({ joined, member }) => ({ joined, name: member.name, keys }),
      ({ code, details }) => ({ code, details, keys }),
    );
  }

  test("are taken by members and former members in whatever case, and the invite stays good", async () => {
    const owner = await start();
    const secret = await inviteBy(owner);
    expect(await join(owner, secret, "aLICE")).toMatchObject({ code: "name_taken", details: { name: "aLICE" } });
    const bob = await join(owner, secret, "bob");
    expect(bob).toMatchObject({ joined: true, name: "bob" });
    await revokeMember(ports(), owner, bob.keys.pubkey);
    const second = await inviteBy(owner);
    expect(await join(owner, second, "Bob")).toMatchObject({ code: "name_taken" });
    expect(await join(owner, second, "bob-2")).toMatchObject({ joined: true });
  });

  test("are none where they read like a public key, which would be taken for that key's holder", async () => {
    const owner = await start();
    const victim = createPeerKeys().pubkey;
    for (const name of [victim, victim.toUpperCase(), owner.pubkey]) {
      expect(await join(owner, await inviteBy(owner), name)).toMatchObject({ code: "invalid_name" });
      await expect(inviteBy(owner, { memberName: name })).rejects.toMatchObject({ code: "invalid_name" });
    }
    expect(await join(owner, await inviteBy(owner), victim.slice(0, 63))).toMatchObject({ joined: true });
  });

  test("stand in no retry's way: the same join again finds its own member", async () => {
    const owner = await start();
    const secret = await inviteBy(owner);
    const first = await join(owner, secret, "bob");
    expect(await join(owner, secret, "bob", first.keys)).toMatchObject({ joined: false, name: "bob" });
    expect(await join(owner, secret, "robert", first.keys)).toMatchObject({ joined: false, name: "bob" });
  });

  test("of many that join at once under one name are given once", async () => {
    const owner = await start();
    const secrets = await Promise.all(Array.from({ length: 8 }, () => inviteBy(owner)));
    const ends = await Promise.all(secrets.map((secret, n) => join(owner, secret, n % 2 === 0 ? "bob" : "BOB")));
    expect(ends.filter((end) => "joined" in end && end.joined)).toHaveLength(1);
    expect(ends.filter((end) => "code" in end && end.code === "name_taken")).toHaveLength(7);
  });

  test("are not disclosed without a live invite", async () => {
    const owner = await start();
    expect(await join(owner, "cms_wrong", "alice")).toMatchObject({ code: "invite_refused" });
  });

  test("that the inviter fixes are the joiner's, whether it says them or not; another is refused", async () => {
    const owner = await start();
    const secret = await inviteBy(owner, { memberName: "worker" });
    expect(await join(owner, secret, "other")).toMatchObject({
      code: "invite_names_another",
      details: { name: "worker" },
    });
    expect(await join(owner, secret, "Worker")).toMatchObject({ code: "invite_names_another" });
    expect(await join(owner, secret, undefined)).toMatchObject({ joined: true, name: "worker" });
    const secondSecret = await inviteBy(owner, { memberName: "worker-2" });
    expect(await join(owner, secondSecret, "worker-2")).toMatchObject({ joined: true, name: "worker-2" });
    expect(await join(owner, await inviteBy(owner), undefined)).toMatchObject({
      code: "invalid_request",
      details: { field: "name" },
    });
  });

  test("can't be fixed where they are taken or are none", async () => {
    const owner = await start();
    await expect(inviteBy(owner, { memberName: "ALICE" })).rejects.toMatchObject({ code: "name_taken" });
    await expect(inviteBy(owner, { memberName: "self" })).rejects.toMatchObject({ code: "invalid_name" });
    // Both were free when they were invited.
    const [first, second] = [await inviteBy(owner, { memberName: "w" }), await inviteBy(owner, { memberName: "W" })];
    expect(await join(owner, first, undefined)).toMatchObject({ joined: true });
    expect(await join(owner, second, undefined)).toMatchObject({ code: "name_taken" });
  });
}

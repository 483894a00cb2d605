// What owners set for their mesh, and what is counted against its limits.
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { expect, test } from "vitest";
import { hashSecret, hashToken } from "../../core/credentials.ts";
import type { Member, MembersStore } from "../../ports.ts";
import { MeshSettingsService } from "../../services/mesh-settings.ts";

const startMs = 1_700_000_000_000;
const nextId = createUuidV7Generator({ nowMs: () => startMs, randomBytes: (length) => new Uint8Array(length) });
const bob = { pubkey: "b".repeat(64), name: "bob" };

export function describeSettings(storeOf: () => MembersStore): void {
  async function start(name = "acme"): Promise<Member> {
    const owner = { pubkey: "a".repeat(64), name: "alice" };
    const created = await storeOf().createMesh({ id: nextId(), name }, owner, startMs);
    if (created.type !== "created") throw new Error("the mesh was there before");
    return created.owner;
  }

  /** A broker of its own: what another has set is not told to it. */
  function openService(ceilings = {}) {
    const clock = { nowMs: startMs };
    const service = new MeshSettingsService({ store: storeOf(), nowMs: () => clock.nowMs, ceilings });
    return { service, clock };
  }

  test("have defaults, change one by one, and go back to their defaults", async () => {
    const owner = await start();
    const { service } = openService();
    expect(await service.of(owner.meshId)).toMatchObject({
      dm_policy: "sealed",
      max_topics: 10_000,
      max_webhooks: 100,
    });
    expect(await service.set(owner, "dm_policy", "any")).toBe("any");
    expect(await service.set(owner, "max_topics", 3)).toBe(3);
    expect(await service.of(owner.meshId)).toMatchObject({ dm_policy: "any", max_topics: 3, max_queues: 10_000 });
    const shown = await service.list(owner.meshId);
    expect(shown.find(({ key }) => key === "max_topics")).toMatchObject({
      value: 3,
      fallback: 10_000,
      maximum: 1_000_000,
      set: { setBy: owner.pubkey, setAt: startMs },
    });
    expect(shown.find(({ key }) => key === "max_queues")).toMatchObject({ value: 10_000, set: undefined });
    expect(await service.set(owner, "max_topics", null)).toBe(10_000);
    expect(await service.of(owner.meshId)).toMatchObject({ dm_policy: "any", max_topics: 10_000 });
  });

  test("of one mesh are not another's", async () => {
    const [owner, other] = [await start(), await start("other")];
    const { service } = openService();
    await service.set(owner, "max_topics", 3);
    expect(await service.of(other.meshId)).toMatchObject({ max_topics: 10_000 });
  });

  test("hold within a second at a broker that was told nothing", async () => {
    const owner = await start();
    const [here, there] = [openService(), openService()];
    expect(await there.service.of(owner.meshId)).toMatchObject({ dm_policy: "sealed" });
    await here.service.set(owner, "dm_policy", "any");
    there.clock.nowMs += 999;
    expect(await there.service.of(owner.meshId)).toMatchObject({ dm_policy: "any" });
  });

  test("are asked of the store once a second, however often they are needed", async () => {
    const owner = await start();
    let asked = 0;
    const store: MembersStore = storeOf();
    const counting = {
      ...store,
      listSettings: (meshId: string) => {
        asked += 1;
        return store.listSettings(meshId);
      },
    };
    const service = new MeshSettingsService({ store: counting, nowMs: () => startMs, ceilings: {} });
    await Promise.all(Array.from({ length: 50 }, () => service.of(owner.meshId)));
    expect(asked).toBe(1);
  });

  test("are an owner's to change, also where it is one no more", async () => {
    const owner = await start();
    const { service } = openService();
    const secretHash = hashSecret("s");
    await storeOf().addInvite(
      owner.meshId,
      { id: "i", secretHash, createdBy: owner.pubkey, expiresAt: startMs + 1 },
      startMs,
    );
    await storeOf().join(owner.meshId, secretHash, bob, startMs);
    const member = { ...owner, ...bob };
    await expect(service.set(member, "max_topics", 3)).rejects.toMatchObject({ code: "forbidden" });
    expect(await storeOf().listSettings(owner.meshId)).toEqual([]);
  });

  test("take what their key takes, up to what the operator allows", async () => {
    const owner = await start();
    const { service } = openService({ max_topics: 50, max_webhooks: 5_000 });
    const wrong: [string, string | number][] = [
      ["dm_policy", "none"],
      ["dm_policy", 1],
      ["max_topics", 51],
      ["max_topics", -1],
      ["max_topics", 1.5],
      ["max_topics", "5"],
      ["max_tokens", 1_000_001],
      ["colour", 1],
      ["__proto__", 1],
    ];
    for (const [key, value] of wrong) {
      await expect(service.set(owner, key, value), key).rejects.toMatchObject({ code: "invalid_request" });
    }
    expect(await service.of(owner.meshId)).toMatchObject({ max_topics: 50, max_webhooks: 100 });
    expect(await service.set(owner, "max_webhooks", 5_000)).toBe(5_000);
    // A ceiling that was lowered since holds for what was set before.
    expect(await openService({ max_webhooks: 7 }).service.of(owner.meshId)).toMatchObject({ max_webhooks: 7 });
  });

  test("what is counted against them: live tokens, and invites that can still be used", async () => {
    const owner = await start();
    const { meshId, pubkey } = owner;
    const store = storeOf();
    const count = (what: "tokens" | "invites", upTo = 100) => store.count(meshId, what, upTo, startMs + 10);
    for (const id of ["t1", "t2", "t3"]) {
      await store.addToken(meshId, { id, tokenHash: hashToken(id), pubkey, label: "" }, startMs);
    }
    await store.revokeToken(meshId, pubkey, "t1", startMs);
    expect(await count("tokens")).toBe(2);
    expect(await count("tokens", 1)).toBe(1);
    for (const [id, expiresAt] of Object.entries({ used: 99, ended: 5, revoked: 99, open: 99, other: 99 })) {
      const invite = { id, secretHash: hashSecret(id), createdBy: pubkey, expiresAt: startMs + expiresAt };
      await store.addInvite(meshId, invite, startMs);
    }
    await store.join(meshId, hashSecret("used"), bob, startMs);
    await store.revokeInvite(meshId, pubkey, "revoked", startMs);
    expect(await count("invites")).toBe(2);
  });
}

// Presence as leases that end by the clock, and the profiles of those who are there.
import { describe, expect, test } from "vitest";
import type { Profile } from "../../ports/presence.ts";
import { endMembership } from "../../services/end-membership.ts";
import type { World } from "./world.ts";

const emptyProfile: Profile = {
  summary: "",
  status: "",
  visible: true,
  avatar: "",
  title: "",
  bio: "",
  capabilities: [],
};

export function describePresence(world: () => World): void {
  const presence = () => world().store.presence;
  const leaseOf = (pubkey: string, connectionId = "c1") => ({ meshId: world().meshId, pubkey, connectionId });
  const hold = (pubkey: string, connectionId = "c1", leaseMs = 45_000) =>
    presence().hold([leaseOf(pubkey, connectionId)], world().nowMs, world().nowMs + leaseMs);
  const page = (reader?: string, after = "", limit = 100) =>
    presence().peers({ meshId: world().meshId, reader, after, limit }, world().nowMs);
  const present = async (reader?: string) => (await page(reader)).items.map(({ pubkey }) => pubkey);
  const setProfile = (pubkey: string, change: Partial<Profile>) =>
    presence().setProfile(world().meshId, pubkey, change, world().nowMs);

  describe("a lease", () => {
    test("makes its member a peer until it ends, by the clock alone", async () => {
      const [alice, bob] = await world().threeMembers();
      expect(await present()).toEqual([]);
      await hold(alice);
      world().nowMs += 20_000;
      await hold(bob);
      expect(await present()).toEqual([alice, bob]);
      world().nowMs += 24_999;
      expect(await present()).toEqual([alice, bob]);
      world().nowMs += 1;
      expect(await present()).toEqual([bob]);
    });

    test("is renewed with others in one call, and comes back if it was swept meanwhile", async () => {
      const [alice, bob] = await world().threeMembers();
      const connectedAtMs = world().nowMs;
      await hold(alice);
      await hold(bob);
      world().nowMs += 30_000;
      const both = [leaseOf(alice), leaseOf(bob)];
      await presence().hold(both, world().nowMs, world().nowMs + 45_000);
      world().nowMs += 44_999;
      expect((await page()).items.map((peer) => peer.connectedAtMs)).toEqual([connectedAtMs, connectedAtMs]);
      world().nowMs += 60_000;
      expect(await presence().sweep(world().nowMs, 100)).toBe(2);
      await presence().hold(both, world().nowMs, world().nowMs + 45_000);
      expect(await present()).toEqual([alice, bob]);
    });

    test("ends at once when it is released; a second connection of the member keeps it there", async () => {
      const [alice] = await world().threeMembers();
      await hold(alice, "c1");
      await hold(alice, "c2");
      expect(await present()).toEqual([alice]);
      await presence().release([leaseOf(alice, "c1")]);
      expect(await present()).toEqual([alice]);
      for (let again = 0; again < 2; again++) await presence().release([leaseOf(alice, "c2")]);
      expect(await present()).toEqual([]);
    });

    test("that ran out is swept, a bounded number at a time, and no other", async () => {
      const [alice, bob, carol] = await world().threeMembers();
      for (const pubkey of [alice, bob]) await hold(pubkey, "c1", 1_000);
      await hold(carol, "c1", 60_000);
      world().nowMs += 1_000;
      expect(await presence().sweep(world().nowMs, 1)).toBe(1);
      expect(await presence().sweep(world().nowMs, 100)).toBe(1);
      expect(await presence().sweep(world().nowMs, 100)).toBe(0);
      expect(await present()).toEqual([carol]);
    });

    test("of a revoked member counts no more, and ends with the membership", async () => {
      const [alice, bob] = await world().threeMembers();
      await hold(alice);
      await hold(bob);
      await world().revoke(alice);
      expect(await present()).toEqual([bob]);
      const { memberships } = world().store;
      await endMembership(
        { store: memberships, nowMs: () => world().nowMs },
        { meshId: world().meshId, pubkey: alice },
      );
      const rows = await world().query(`SELECT member_pubkey FROM ${world().table("presence_lease")}`);
      expect(rows.map((row) => row.member_pubkey)).toEqual([bob]);
    });

    test("belongs to one mesh, and is seen by every broker", async () => {
      const [alice] = await world().threeMembers();
      await hold(alice);
      const other = await world().startOther("mesh-2");
      await other.threeMembers();
      const query = { reader: undefined, after: "", limit: 10 };
      expect((await other.store.presence.peers({ ...query, meshId: "mesh-2" }, world().nowMs)).items).toEqual([]);
      const elsewhere = await other.store.presence.peers({ ...query, meshId: world().meshId }, world().nowMs);
      expect(elsewhere.items).toHaveLength(1);
      await other.close();
    });
  });

  describe("a peer", () => {
    test("is shown with name, role and profile, page by page", async () => {
      const [alice, bob, carol] = await world().threeMembers();
      for (const pubkey of [carol, alice, bob]) await hold(pubkey);
      await setProfile(bob, { summary: "fixing the build", capabilities: ["review", "deploy"] });
      const first = await page(undefined, "", 2);
      expect(first.items).toEqual([
        { pubkey: alice, name: "m", role: "member", connectedAtMs: world().nowMs, profile: emptyProfile },
        {
          pubkey: bob,
          name: "m",
          role: "member",
          connectedAtMs: world().nowMs,
          profile: { ...emptyProfile, summary: "fixing the build", capabilities: ["review", "deploy"] },
        },
      ]);
      expect(first.nextCursor).toBe(bob);
      const second = await page(undefined, bob, 2);
      expect([second.items.map(({ pubkey }) => pubkey), second.nextCursor]).toEqual([[carol], undefined]);
    });

    test("that is invisible is shown to itself alone", async () => {
      const [alice, bob] = await world().threeMembers();
      await hold(alice);
      await hold(bob);
      await setProfile(alice, { visible: false });
      expect(await present()).toEqual([bob]);
      expect(await present(bob)).toEqual([bob]);
      expect(await present(alice)).toEqual([alice, bob]);
      await setProfile(alice, { visible: true });
      expect(await present(bob)).toEqual([alice, bob]);
    });

    test("with a long profile does not make the page outgrow a frame", async () => {
      const bio = "\u{1F680}".repeat(100_000);
      const members = await world().threeMembers();
      for (const pubkey of members) {
        await hold(pubkey);
        await setProfile(pubkey, { bio });
      }
      const seen: string[] = [];
      let after: string | undefined = "";
      while (after !== undefined) {
        const { items, nextCursor }: Awaited<ReturnType<typeof page>> = await page(undefined, after);
        expect(Buffer.byteLength(JSON.stringify(items))).toBeLessThan(1_100_000);
        seen.push(...items.map(({ pubkey }) => pubkey));
        after = nextCursor;
      }
      expect(seen).toEqual(members);
    });
  });

  describe("a profile", () => {
    test("changes field by field and outlives connections", async () => {
      const [alice] = await world().threeMembers();
      expect(await setProfile(alice, { status: "working", title: "builder" })).toEqual({
        ...emptyProfile,
        status: "working",
        title: "builder",
      });
      await world().reopen();
      expect(await setProfile(alice, { status: "", visible: false, avatar: "🦊" })).toEqual({
        ...emptyProfile,
        title: "builder",
        visible: false,
        avatar: "🦊",
      });
      expect(await setProfile(alice, {})).toMatchObject({ title: "builder", visible: false });
    });
  });
}

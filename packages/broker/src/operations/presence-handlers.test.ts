// Presence over the wire, against a real broker: which members are listed, which are notified of which, and profiles.
import { describe, expect, test } from "vitest";
import { startTestPair, type TestMember } from "../../../../tests/support/broker-harness.ts";
import type { RawPeer } from "../../../../tests/support/raw-peer.ts";

const joined = (peer: RawPeer, { pubkey }: TestMember) =>
  peer.next((frame) => frame.type === "peer_join" && frame.pubkey === pubkey);
const left = (peer: RawPeer, { pubkey }: TestMember) =>
  peer.next((frame) => frame.type === "peer_leave" && frame.pubkey === pubkey);

async function peersSeenBy(member: TestMember): Promise<string[]> {
  const { body } = await member.call("GET", "/peers");
  return (body.items as { name: string }[]).map(({ name }) => name).toSorted();
}

describe("peers", () => {
  test("are members whose daemon is connected; others hear them come and go", async () => {
    const { alice, bob } = await startTestPair();
    expect(await peersSeenBy(alice)).toEqual([]);
    const watcher = await alice.connect();
    await bob.connect("client");
    const daemon = await bob.connect();
    expect(await joined(watcher, bob)).toEqual({
      type: "peer_join",
      pubkey: bob.pubkey,
      name: "bob",
      role: "member",
      connected_at: expect.any(Number),
      summary: "",
      status: "",
      visible: true,
      avatar: "",
      title: "",
      bio: "",
      capabilities: [],
    });
    expect(await peersSeenBy(bob)).toEqual(["alice", "bob"]);
    await daemon.drop();
    expect(await left(watcher, bob)).toEqual({ type: "peer_leave", pubkey: bob.pubkey });
    expect(await peersSeenBy(bob)).toEqual(["alice"]);
    expect(watcher.arrived).toEqual([]);
  });

  test("are listed page by page, as they describe themselves", async () => {
    const { alice, bob } = await startTestPair();
    const watcher = await alice.connect();
    await bob.connect();
    await joined(watcher, bob);
    const profile = { summary: "builds", status: "working", title: "builder", bio: "…", avatar: "🦊" };
    const set = await bob.call("POST", "/profile", { ...profile, capabilities: ["review"] });
    expect(set).toMatchObject({ status: 200, body: { pubkey: bob.pubkey, ...profile, visible: true } });
    const first = await alice.call("GET", "/peers?limit=1");
    const second = await alice.call("GET", `/peers?limit=1&after=${first.body.next_cursor}`);
    const items = [first, second].flatMap(({ body }) => body.items as { pubkey: string }[]);
    expect(items.map(({ pubkey }) => pubkey)).toEqual([alice.pubkey, bob.pubkey].toSorted());
    expect(items.find(({ pubkey }) => pubkey === bob.pubkey)).toMatchObject({ ...profile, capabilities: ["review"] });
  });

  test("that make themselves invisible leave, and are listed to themselves alone", async () => {
    const { alice, bob } = await startTestPair();
    const watcher = await alice.connect();
    const daemon = await bob.connect();
    await joined(watcher, bob);
    expect((await daemon.request("profile.set", { visible: false })).body).toMatchObject({ visible: false });
    await left(watcher, bob);
    expect(await peersSeenBy(alice)).toEqual(["alice"]);
    expect(await peersSeenBy(bob)).toEqual(["alice", "bob"]);
    await bob.call("POST", "/profile", { visible: true });
    await joined(watcher, bob);
    expect(await peersSeenBy(alice)).toEqual(["alice", "bob"]);
  });

  test("that are revoked leave at once", async () => {
    const { alice, bob } = await startTestPair();
    const watcher = await alice.connect();
    await bob.connect();
    await joined(watcher, bob);
    await alice.call("DELETE", `/members/${bob.pubkey}`);
    await left(watcher, bob);
    expect(await peersSeenBy(alice)).toEqual(["alice"]);
  });

  test("that are replaced by their newer daemon neither leave nor come again", async () => {
    const { alice, bob } = await startTestPair();
    const watcher = await alice.connect();
    const older = await bob.connect();
    await joined(watcher, bob);
    const newer = await bob.connect();
    expect((await older.closed).code).toBe(4003);
    await newer.drop();
    // The next notice about bob is that it left, with its last connection.
    const next = await watcher.next(({ pubkey }) => pubkey === bob.pubkey);
    expect(next.type).toBe("peer_leave");
  });
});

describe("a profile", () => {
  test.each([
    [{ summary: "x".repeat(513) }, "summary"],
    [{ status: "x".repeat(65) }, "status"],
    [{ avatar: "x".repeat(257) }, "avatar"],
    [{ title: "x".repeat(129) }, "title"],
    [{ bio: "x".repeat(2_049) }, "bio"],
    [{ capabilities: Array(33).fill("x") }, "capabilities"],
    [{ capabilities: ["x".repeat(65)] }, "capabilities.0"],
    [{ visible: "no" }, "visible"],
    [{ bio: "nul \0" }, "bio"],
  ])("with %j is refused", async (change, field) => {
    const { alice } = await startTestPair();
    const refused = await alice.call("POST", "/profile", change);
    expect(refused).toMatchObject({ status: 400, body: { error: "invalid_request", field } });
  });

  test("of the largest size is taken and kept", async () => {
    const { alice } = await startTestPair();
    const profile = {
      summary: "é".repeat(512),
      status: "x".repeat(64),
      avatar: "x".repeat(256),
      title: "x".repeat(128),
      bio: "\u{1F680}".repeat(2_048),
      capabilities: Array.from({ length: 32 }, (_, index) => `c${index}`.padEnd(64, "x")),
    };
    await alice.call("POST", "/profile", profile);
    expect(await alice.call("POST", "/profile", {})).toMatchObject({
      status: 200,
      body: { ...profile, visible: true },
    });
  });
});

// What the socket server does at intervals, against a real broker whose intervals are ours: members that were revoked
// elsewhere are cut off, and presence is renewed.
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createTestMesh, joinTestMesh, startTestBroker } from "../../../../tests/support/broker-harness.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const aliveIntervalMs = 15_000;

test("a member that was revoked through another broker is cut off at the next check, and no other is", async () => {
  const broker = await startTestBroker();
  const alice = await createTestMesh(broker);
  const bob = await joinTestMesh(alice, "bob");
  const [watcher, daemon, client] = [await alice.connect(), await bob.connect(), await bob.connect("client")];
  const db = new DatabaseSync(broker.storePath);
  db.prepare("UPDATE member SET revoked_at = 1 WHERE pubkey = ?").run(bob.pubkey);
  db.close();
  expect((await daemon.request("topic.list")).status).toBe(200);
  vi.advanceTimersByTime(aliveIntervalMs);
  for (const peer of [daemon, client]) {
    expect(await peer.next((frame) => frame.type === "member_revoked")).toMatchObject({ pubkey: bob.pubkey });
    expect((await peer.closed).code).toBe(4005);
  }
  expect((await watcher.request("topic.list")).status).toBe(200);
});

test("a lease that was lost comes back with the next renewal", async () => {
  const broker = await startTestBroker();
  const alice = await createTestMesh(broker);
  await alice.connect();
  const peers = async () => (await alice.call("GET", "/peers")).body.items;
  await vi.waitFor(async () => expect(await peers()).toHaveLength(1));
  const db = new DatabaseSync(broker.storePath);
  db.exec("DELETE FROM presence_lease");
  db.close();
  expect(await peers()).toHaveLength(0);
  vi.advanceTimersByTime(aliveIntervalMs);
  await vi.waitFor(async () => expect(await peers()).toHaveLength(1));
});

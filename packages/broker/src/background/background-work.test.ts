// What a broker takes up when it starts: what another process left to be done.
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  createTestMesh,
  joinTestMesh,
  makeTemporaryFolder,
  startTestBroker,
} from "../../../../tests/support/broker-harness.ts";

test("the end of a membership that a crash interrupted is finished after the next start", async () => {
  const folder = makeTemporaryFolder();
  const first = await startTestBroker({ folder });
  const alice = await createTestMesh(first);
  const bob = await joinTestMesh(alice, "bob");
  await alice.send("m1", bob);
  await first.stop();
  // As revoking leaves it before anything else is ended.
  const db = new DatabaseSync(first.storePath);
  db.prepare("UPDATE member SET revoked_at = 1 WHERE pubkey = ?").run(bob.pubkey);
  await startTestBroker({ folder });
  const outcome = () => db.prepare("SELECT outcome FROM delivery_queue").get()?.outcome;
  await vi.waitFor(() => expect(outcome()).toBe("expired"), 10_000);
  db.close();
});

test("messages that were accepted and not yet indexed are found after the next start", async () => {
  const folder = makeTemporaryFolder();
  const first = await startTestBroker({ folder });
  const alice = await createTestMesh(first);
  await alice.call("POST", "/topics", { name: "news" });
  const destination = { kind: "topic", ref: "news" };
  const post = (id: number) =>
    alice.call("POST", "/messages", { client_message_id: `m${id}`, destination, body: "find me" });
  await Promise.all(Array.from({ length: 50 }, (_, id) => post(id)));
  await first.stop();
  const second = await startTestBroker({ folder });
  alice.url = second.url;
  const found = async () => (await alice.call("GET", "/search?q=find&limit=1000")).body.items;
  await vi.waitFor(async () => expect(await found()).toHaveLength(50), 10_000);
});

test("what is old goes by itself, a minute after the start", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const broker = await startTestBroker({ flags: { "message-retention-days": "1" } });
  const alice = await createTestMesh(broker);
  await alice.send("m1", alice);
  const db = new DatabaseSync(broker.storePath);
  onTestFinished(() => db.close());
  db.prepare("UPDATE message_history SET accepted_at = ?").run(Date.now() - 2 * 86_400_000);
  const available = () => db.prepare("SELECT history_available AS flag FROM client_message_dedupe").get()?.flag;
  expect(available()).toBe(1);
  await vi.waitFor(() => {
    vi.advanceTimersByTime(61_000);
    expect(available()).toBe(0);
  }, 10_000);
});

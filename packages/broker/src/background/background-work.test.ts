// What a broker takes up when it starts: what another process left to be done.
import { DatabaseSync } from "node:sqlite";
import { expect, test, vi } from "vitest";
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
  await Promise.all(Array.from({ length: 50 }, (_, id) => alice.send(`m${id}`, alice, "find me")));
  await first.stop();
  const second = await startTestBroker({ folder });
  alice.url = second.url;
  const found = async () => (await alice.call("GET", "/search?q=find&limit=1000")).body.items;
  await vi.waitFor(async () => expect(await found()).toHaveLength(50), 10_000);
});

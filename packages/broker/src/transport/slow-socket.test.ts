// A peer that asks and does not read: the broker bounds what it keeps for it and drops the socket, never the data.
import { expect, test } from "vitest";
import { createTestMesh, startTestBroker } from "../../../../tests/support/broker-harness.ts";
import type { RunningBroker } from "../start.ts";

/** Resolves when so many members' connections are left. */
async function connectionsLeft(broker: RunningBroker, count: number): Promise<void> {
  const metrics = async () => (await fetch(`${broker.url}/metrics`)).text();
  await expect.poll(metrics, { timeout: 10_000 }).toContain(`cm_broker_connections ${count}\n`);
}

test("a socket that takes nothing of what it asked for is dropped, and all others are served", async () => {
  const broker = await startTestBroker({ flags: { "max-inline-bytes": "1048576" } });
  const alice = await createTestMesh(broker);
  for (const id of ["m1", "m2", "m3"]) await alice.send(id, alice, "x".repeat(1_000_000));
  const [slow, other] = [await alice.connect("client"), await alice.connect("client")];
  slow.socket.pause();
  for (let id = 100; id < 160; id++) slow.sendText(JSON.stringify({ type: "history", id, limit: 1 }));
  // More than the buffers of the system hold: what is left is the broker's to keep, and it does not.
  await connectionsLeft(broker, 1);
  slow.socket.resume();
  expect((await slow.closed).code).toBe(1006);
  const { body } = await other.request("history", { limit: 1 });
  expect(body.items).toMatchObject([{ client_message_id: "m1" }]);
});

test("a socket that takes none of the answers to its pings is dropped likewise", async () => {
  const broker = await startTestBroker();
  const alice = await createTestMesh(broker);
  const [slow, other] = [await alice.connect("client"), await alice.connect("client")];
  slow.socket.pause();
  for (let sent = 0; sent < 400_000; sent++) slow.socket.ping(Buffer.alloc(125));
  await connectionsLeft(broker, 1);
  slow.socket.resume();
  expect((await slow.closed).code).toBe(1006);
  expect((await other.request("topic.list")).status).toBe(200);
});

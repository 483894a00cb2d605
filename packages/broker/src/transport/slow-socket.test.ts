// A peer that asks and does not read: the broker bounds what it keeps for it and drops the socket, never the data.
import { expect, test } from "vitest";
import { createTestMesh, startTestBroker } from "../../../../tests/support/broker-harness.ts";

test("a socket that takes nothing of what it asked for is dropped, and everybody else is served", async () => {
  const broker = await startTestBroker({ flags: { "max-inline-bytes": "1048576" } });
  const alice = await createTestMesh(broker);
  for (const id of ["m1", "m2", "m3"]) await alice.send(id, alice, "x".repeat(1_000_000));
  const [slow, other] = [await alice.connect("client"), await alice.connect("client")];
  slow.socket.pause();
  for (let id = 100; id < 160; id++) slow.sendText(JSON.stringify({ type: "history", id, limit: 1 }));
  // More than the buffers of the system hold: what is left is the broker's to keep, and it does not.
  const metrics = async () => (await fetch(`${broker.url}/metrics`)).text();
  await expect.poll(metrics, { timeout: 10_000 }).toContain("cm_broker_connections 1\n");
  slow.socket.resume();
  expect((await slow.closed).code).toBe(1006);
  const { body } = await other.request("history", { limit: 1 });
  expect(body.items).toMatchObject([{ client_message_id: "m1" }]);
});

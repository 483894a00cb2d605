// Whether a mesh takes direct messages in clear, on both transports, against a real broker. The sends of commits are in
// testing/spaces-on-the-wire.ts.
import { expect, test } from "vitest";
import { startTestPair } from "../../../../tests/support/broker-harness.ts";

test("a message in clear to a member is 422 and consumes nothing, unless the mesh allows it; what was accepted stays so", async () => {
  const { alice, bob } = await startTestPair();
  const plain = { client_message_id: "m1", destination: { kind: "dm", ref: bob.pubkey }, body: "hello" };
  const refused = { status: 422, body: { error: "dm_not_sealed", retryable: false } };
  expect(await alice.call("POST", "/messages", plain)).toMatchObject(refused);
  const peer = await alice.connect("client");
  expect(await peer.request("send", plain)).toMatchObject(refused);
  await alice.set("dm_policy", "any");
  expect((await peer.request("send", plain)).status).toBe(201);
  await alice.set("dm_policy", null);
  expect(await alice.call("POST", "/messages", plain)).toMatchObject({ status: 200, body: { duplicate: true } });
  expect(await peer.request("send", { ...plain, client_message_id: "m2" })).toMatchObject(refused);
  expect((await bob.call("GET", "/history")).body.items).toMatchObject([{ client_message_id: "m1", body: "hello" }]);
});

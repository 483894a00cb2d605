// Operations that a member signs one by one, against a real broker: what a relay that stands in a session can do with the
// frames that it sees, and with those that it makes up.
import { isSignedOperation } from "@claudemesh/protocol/wire/operations";
import { describe, expect, test } from "vitest";
import { createTestMesh, joinTestMesh, startTestBroker } from "../../../../tests/support/broker-harness.ts";
import { operationNames } from "../operations/run-operation.ts";

const refused = { status: 403, body: { error: "forbidden", field: "signature" } };

async function openOwner() {
  const broker = await startTestBroker();
  const alice = await createTestMesh(broker);
  return { broker, alice, peer: await alice.connect("client") };
}

describe("an operation that is signed", () => {
  const inputs: Readonly<Record<string, object>> = {
    "token.create": { label: "ci" },
    "invite.create": { expires_in_s: 60 },
    "member.revoke": { pubkey: "0a".repeat(32) },
    "member.role": { pubkey: "0a".repeat(32), role: "owner" },
    "mesh.set": { key: "max_topics", value: 500 },
    "topic.delete": { name: "news" },
    "webhook.create": { webhook: "ci", url: "https://ci.example.org/", topics: ["b", "a"] },
    "webhook.delete": { webhook: "ci" },
  };

  test("is each that makes a credential, or that only an owner may and that takes something from others", () => {
    expect(operationNames.filter(isSignedOperation).sort()).toEqual(Object.keys(inputs).sort());
  });

  test.each(Object.entries(inputs))("%s is refused without its signature, and does nothing", async (type, input) => {
    const { alice, peer } = await openOwner();
    for (const signature of [undefined, null, 7, "", "0".repeat(127), "0".repeat(128), "Z".repeat(128)]) {
      expect(await peer.request(type, { ...input, signature })).toMatchObject(refused);
    }
    expect((await alice.call("GET", "/invites")).body.items).toEqual([]);
    const answer = await peer.request(type, input);
    expect([200, 201, 404], JSON.stringify(answer.body)).toContain(answer.status);
  });

  test("is good for its content, its operation and its id alone", async () => {
    const { peer } = await openOwner();
    const input = { expires_in_s: 60 };
    const id = 50;
    const good = peer.signatureOf("invite.create", input, id);
    const attempts: [type: string, input: object, id: number][] = [
      ["invite.create", { expires_in_s: 61 }, id],
      ["invite.create", {}, id],
      ["invite.create", input, id + 1],
      ["token.create", {}, id],
    ];
    for (const [type, changed, otherId] of attempts) {
      const reply = peer.next((frame) => frame.type === "reply" && frame.id === otherId);
      peer.sendText(JSON.stringify({ ...changed, type, id: otherId, signature: good }));
      expect(await reply).toMatchObject(refused);
    }
    const reply = peer.next((frame) => frame.type === "reply" && frame.id === id);
    peer.sendText(JSON.stringify({ ...input, type: "invite.create", id, signature: good }));
    expect(await reply).toMatchObject({ status: 201 });
  });

  test("is good once: again, and under a lower id, it is refused", async () => {
    const { alice, peer } = await openOwner();
    const ask = async (id: number, signature = peer.signatureOf("token.create", { label: "x" }, id)) => {
      const reply = peer.next((frame) => frame.type === "reply" && frame.id === id);
      peer.sendText(JSON.stringify({ type: "token.create", label: "x", id, signature }));
      return (await reply).status;
    };
    const taken = peer.signatureOf("token.create", { label: "x" }, 60);
    expect(await ask(60, taken)).toBe(201);
    expect(await ask(60, taken)).toBe(403);
    expect(await ask(59)).toBe(403);
    expect(await ask(61)).toBe(201);
    // One for the calls of this test itself.
    expect((await alice.call("GET", "/tokens")).body.items).toHaveLength(3);
  });

  test("is no good on another connection, nor signed by another member", async () => {
    const { alice, peer } = await openOwner();
    const bob = await joinTestMesh(alice, "bob");
    const [second, bobs] = [await alice.connect("client"), await bob.connect("client")];
    const input = { label: "x" };
    const foreign = [
      peer.signatureOf("token.create", input, 70),
      bobs.signatureOf("token.create", input, 70, second.session),
    ];
    for (const signature of foreign) {
      const reply = second.next((frame) => frame.type === "reply" && frame.id === 70);
      second.sendText(JSON.stringify({ ...input, type: "token.create", id: 70, signature }));
      expect(await reply).toMatchObject(refused);
    }
  });

  test("is not named in the input of others: a signature there is a field that is not known", async () => {
    const { peer } = await openOwner();
    const unknown = { status: 400, body: { error: "unknown_field", field: "signature" } };
    expect(await peer.request("topic.create", { name: "x", signature: "0".repeat(128) })).toMatchObject(unknown);
  });
});

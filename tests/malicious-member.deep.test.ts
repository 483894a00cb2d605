// What a member with a good key can do to the others through an honest broker, move by move, and what each move comes to. A real
// broker and real daemons of the others. The whole list, with what is tried elsewhere: docs/threat-model.md.
import { withBroker } from "@claudemesh/client/broker";
import type { MessageFacts } from "@claudemesh/client/daemon";
import { generateMemberKeys } from "@claudemesh/client/keys";
import { describe, expect, test } from "vitest";
import { MaliciousBroker } from "./support/malicious-broker.ts";
import { MaliciousMember } from "./support/malicious-member.ts";
import { soon } from "./support/member-home.ts";

const secret = "the launch code is 0451-tulip";

/** The broker stays honest, and what it pushes is seen. */
async function start() {
  const { broker, members } = await MaliciousBroker.with("alice", "bob");
  const [alice = expect.unreachable(), bob = expect.unreachable()] = members;
  const join = (name: string) => MaliciousMember.join(broker.url, broker.meshId, alice, name);
  return { broker, alice, bob, mallory: await join("mallory"), join };
}

describe("a member that seals what is not true", () => {
  test.each([
    ["another message's id", { clientMessageId: "another" }],
    ["another member as the recipient", { recipient: generateMemberKeys().ed25519.public_key }],
    ["another priority", { priority: "now" }],
    ["an answer to another message", { replyToId: "another" }],
  ] as const)("in which stands %s than beside it, gets nothing of it shown", async (_, content) => {
    const { bob, mallory } = await start();
    const box = await mallory.box(bob.pubkey, { clientMessageId: "m-1", ...content });
    // A box for another member is no box between the two, however it is labelled.
    const unreadable = "recipient" in content ? true : "relabelled";
    expect((await mallory.send(bob.pubkey, "m-1", box)).status).toBe(201);
    await bob.untilArrived({ client_message_id: "m-1", body: null, unreadable });
  });

  test("or sends no box at all, leaves an item that is marked as unreadable and names it", async () => {
    const { bob, mallory } = await start();
    const noise = Buffer.alloc(256, 7).toString("base64");
    expect((await mallory.send(bob.pubkey, "noise", noise)).status).toBe(201);
    const sender = { sender_pubkey: mallory.pubkey, sender_name: "mallory" };
    await bob.untilArrived({ client_message_id: "noise", body: null, unreadable: true, ...sender });
  });

  test("answers a message that it cannot know of, and is shown as its sender", async () => {
    const { bob, mallory } = await start();
    const said = { clientMessageId: "m-1", replyToId: "between-others", body: Buffer.from("yes, do it") };
    const box = await mallory.box(bob.pubkey, said);
    await mallory.send(bob.pubkey, "m-1", box, { reply_to_id: "between-others" });
    await bob.untilArrived({ body: "yes, do it", reply_to_id: "between-others", sender_name: "mallory" });
  });
});

describe("a member that passes on what another one sealed", () => {
  test("has it opened neither as its own nor as the answer of the member it was sealed for", async () => {
    const { broker, alice, bob, mallory } = await start();
    const sent = await alice.client.send({
      to: `dm:${mallory.pubkey}`,
      message: secret,
      client_message_id: "for-mallory",
    });
    expect(sent.status).toBe(202);
    const pushed = await broker.untilPushed("for-mallory");
    const box = String(pushed.body_base64);
    await mallory.send(bob.pubkey, "passed-on", box);
    await bob.untilArrived({ client_message_id: "passed-on", body: null, unreadable: true });
    await mallory.send(alice.pubkey, "handed-back", box);
    await alice.untilArrived({ client_message_id: "handed-back", body: null, unreadable: "relabelled" });
  });
});

describe("a member that wants another one's place", () => {
  test("gets no name that a member has, in whatever case", async () => {
    const { join } = await start();
    for (const name of ["alice", "ALICE", "Bob"])
      await expect(join(name)).rejects.toMatchObject({ code: "name_taken" });
  });

  test("may use up an id that it guesses, and the sender whose id it was to be learns of it", async () => {
    const { alice, mallory } = await start();
    await mallory.peer.request("topic.create", { name: "news" });
    const destination = { kind: "topic", ref: "news" };
    const taken = await mallory.peer.request("send", { client_message_id: "build-42", destination, body: "mine" });
    expect(taken.status).toBe(201);
    await alice.client.send({ to: "@bob", message: secret, client_message_id: "build-42" });
    const facts = async () => (await alice.client.message("build-42")).body as MessageFacts;
    await expect.poll(async () => (await facts()).state, soon).toBe("dead");
    expect(await facts()).toMatchObject({ last_error: expect.stringContaining("idempotency_key_reused") });
  });

  test("fences no send of another member with the id of which it guesses", async () => {
    const { alice, bob, mallory } = await start();
    const fence = { client_message_id: "build-42", fingerprint: "5f".repeat(32) };
    expect((await mallory.peer.request("fence", fence)).body).toMatchObject({ fate: "fenced" });
    await alice.client.send({ to: "@bob", message: secret, client_message_id: "build-42" });
    await bob.untilArrived({ client_message_id: "build-42", body: secret });
  });

  test("learns nothing of messages between others, and settles none of them", async () => {
    const { broker, alice, bob, mallory } = await start();
    broker.deliver = () => undefined;
    await alice.client.send({ to: "@bob", message: secret, client_message_id: "between-us" });
    const { history_id, broker_message_id } = await broker.untilPushed("between-us");
    const ask = (type: string, input: object) => mallory.peer.request(type, input);
    expect(await ask("message.state", { broker_message_id })).toMatchObject({ status: 404 });
    expect((await ask("history", { after: 0 })).body).toMatchObject({ items: [] });
    expect(
      (await ask("fate", { client_message_id: "between-us", fingerprint: "5f".repeat(32) })).body,
    ).not.toHaveProperty("broker_message_id");
    expect((await ask("ack", { history_ids: [history_id] })).status).toBe(200);
    broker.deliver = (message) => message;
    await broker.meetAgain(bob);
    await bob.untilArrived({ client_message_id: "between-us", body: secret });
  });

  test("gives itself no rights, and takes none away", async () => {
    const { alice, bob, mallory } = await start();
    const moves: readonly [string, object][] = [
      ["invite.create", {}],
      ["member.role", { pubkey: mallory.pubkey, role: "owner" }],
      ["member.revoke", { pubkey: bob.pubkey }],
      ["mesh.set", { key: "dm_policy", value: "any" }],
      ["webhook.create", { webhook: "w", url: "https://example.org", topics: ["news"], secret: "0123456789abcdef" }],
    ];
    for (const [operation, input] of moves) {
      expect(await mallory.peer.request(operation, input), operation).toMatchObject({ status: 403 });
    }
    await alice.client.send({ to: "@bob", message: secret, client_message_id: "still-there" });
    await bob.untilArrived({ client_message_id: "still-there", body: secret });
  });
});

describe("a member that takes what all share", () => {
  test("may hold a key of once and a queue's messages, and others learn which member holds the key", async () => {
    const { broker, alice, mallory } = await start();
    const claim = { key: "deploy", claim_id: "c-1", inputs_fingerprint: "5f".repeat(32), lease_s: 60 };
    expect((await mallory.peer.request("once.claim", claim)).status).toBe(201);
    await mallory.peer.request("queue.create", { queue: "jobs", max_deliveries: 5 });
    const destination = { kind: "queue", ref: "jobs" };
    await withBroker(broker.optionsOf(alice), async (call) => {
      const held = { code: "running", details: { holder_pubkey: mallory.pubkey } };
      await expect(call("once.claim", { ...claim, claim_id: "c-2" })).rejects.toMatchObject(held);
      await call("send", { client_message_id: "job-1", destination, body: "work" });
      const lease = { queue: "jobs", max: 10, lease_s: 60 };
      const taken = await mallory.peer.request("queue.lease", { ...lease, lease_request_id: "mallory-1" });
      expect(taken.body).toMatchObject({ items: [{ client_message_id: "job-1" }] });
      expect(await call("queue.lease", { ...lease, lease_request_id: "alice-1" })).toMatchObject({ items: [] });
    });
  });

  test("cannot write a direct message in clear where the mesh wants them sealed", async () => {
    const { bob, mallory } = await start();
    const destination = { kind: "dm", ref: bob.pubkey };
    const sent = await mallory.peer.request("send", { client_message_id: "clear", destination, body: "in clear" });
    expect(sent).toMatchObject({ status: 422, body: { error: "dm_not_sealed" } });
  });
});

// What a broker that holds its own key can do to its members, move by move, and what each move comes to. Real daemons, and a
// real broker whose words a test changes. What it can do to a sealed message and to a name that was written to is tried in
// packages/daemon/src/malicious-broker.test.ts. The whole list: docs/threat-model.md.
import { withBroker } from "@claudemesh/client/broker";
import type { MessageFacts } from "@claudemesh/client/daemon";
import { generateMemberKeys } from "@claudemesh/client/keys";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Frame, MaliciousBroker } from "./support/malicious-broker.ts";
import { brokerOf, type MemberHome, soon, untilOnline } from "./support/member-home.ts";
import { createPeerKeys } from "./support/peer-keys.ts";
import { PortThief } from "./support/port-thief.ts";

async function start() {
  const { broker, members } = await MaliciousBroker.with("alice", "bob");
  const [alice = expect.unreachable(), bob = expect.unreachable()] = members;
  const send = async (id: string, given: object = {}) => {
    const { status } = await alice.client.send({ to: "@bob", message: secret, client_message_id: id, ...given });
    expect(status).toBe(202);
  };
  return { broker, alice, bob, send };
}

const secret = "the launch code is 0451-tulip";

async function factsOf(member: MemberHome, id: string): Promise<MessageFacts> {
  return (await member.client.message(id)).body as MessageFacts;
}

const untilState = (member: MemberHome, id: string, state: string) =>
  expect.poll(async () => (await factsOf(member, id)).state, soon).toBe(state);

/** A message that no member sent. */
const invented = (to: MemberHome, given: object = {}): Frame => ({
  history_id: 9_000,
  broker_message_id: "0198c0de-0000-7000-8000-000000009000",
  client_message_id: "invented",
  destination: { kind: "dm", ref: to.pubkey },
  sender_pubkey: to.pubkey,
  envelope_version: "1",
  body: "invented",
  meta: null,
  priority: "next",
  reply_to_id: null,
  accepted_at: 1_700_000_000_000,
  ...given,
});

describe("a broker that brings a message to the wrong member", () => {
  test("has a box for bob opened by bob alone, no matter for whom it says that it is", async () => {
    const { broker, members } = await MaliciousBroker.with("alice", "bob", "carol");
    const [alice = expect.unreachable(), bob = expect.unreachable(), carol = expect.unreachable()] = members;
    await alice.client.send({ to: "@bob", message: secret, client_message_id: "for-bob" });
    const pushed = await broker.untilPushed("for-bob");
    const another = { ...pushed, history_id: 9_000, broker_message_id: "as-hers" };
    broker.push(carol, pushed);
    broker.push(carol, { ...another, client_message_id: "as-hers", destination: { kind: "dm", ref: carol.pubkey } });
    await carol.untilArrived({ client_message_id: "for-bob", unreadable: "relabelled", body: null });
    await carol.untilArrived({ client_message_id: "as-hers", unreadable: true, body: null, sealed: true });
    expect(JSON.stringify(await carol.inbox())).not.toContain("tulip");
    await bob.untilArrived({ body: secret, sender_pubkey: alice.pubkey });
  });

  test("does not get a text in clear shown that it says is for another member, or from a queue", async () => {
    const { broker, alice, bob } = await start();
    const wrong = [
      { client_message_id: "another's", destination: { kind: "dm", ref: alice.pubkey } },
      { client_message_id: "queue's", destination: { kind: "queue", ref: "jobs" } },
    ];
    for (const [at, given] of wrong.entries()) {
      broker.push(bob, invented(bob, { ...given, history_id: 9_000 + at, broker_message_id: `wrong-${at}` }));
      const items = await bob.untilArrived({ client_message_id: given.client_message_id });
      expect(items.find((item) => item.client_message_id === given.client_message_id)).toMatchObject({
        body: null,
        unreadable: "relabelled",
      });
    }
    expect(bob.events("unreadable_message")).toHaveLength(2);
    expect((await bob.client.health()).body).toMatchObject({ inbox: { unreadable: 2 } });
  });
});

describe("a broker that writes messages of its own", () => {
  test("gets a direct message in clear shown in a member's name, and marked as not sealed", async () => {
    const { broker, alice, bob } = await start();
    broker.push(bob, invented(bob, { sender_pubkey: alice.pubkey }));
    await bob.untilArrived({ body: "invented", sender_name: "alice", sealed: false });
  });

  test("gets a message to a topic shown in any member's name, also where the receiver never subscribed", async () => {
    const { broker, alice, bob } = await start();
    broker.push(bob, invented(bob, { sender_pubkey: alice.pubkey, destination: { kind: "topic", ref: "news" } }));
    await bob.untilArrived({ body: "invented", topic: "news", sender_name: "alice", sealed: false });
  });

  test("gets a sealed message shown once more under its own id, beside the first and with a line in the log", async () => {
    const { broker, bob, send } = await start();
    await send("once");
    const pushed = await broker.untilPushed("once");
    await bob.untilArrived({ client_message_id: "once", body: secret });
    broker.push(bob, { ...pushed, history_id: 9_001, broker_message_id: "0198c0de-0000-7000-8000-000000009001" });
    await expect.poll(async () => (await bob.inbox()).length, soon).toBe(2);
    expect((await bob.inbox()).map((item) => item.client_message_id)).toEqual(["once", "once"]);
    expect(bob.events("client_id_reused")).toMatchObject([{ client_message_id: "once", history_id: 9_001 }]);
  });

  test("gets a message that it repeats as it was shown once", async () => {
    const { broker, bob, send } = await start();
    await send("once");
    const pushed = await broker.untilPushed("once");
    await bob.untilArrived({ client_message_id: "once" });
    broker.push(bob, pushed);
    broker.push(bob, invented(bob, { client_message_id: "behind-it" }));
    await bob.untilArrived({ client_message_id: "behind-it" });
    expect(await bob.inbox()).toHaveLength(2);
  });
});

describe("a broker that keeps back or shuffles", () => {
  test("a message leaves its sender with stored, and never with delivered", async () => {
    const { broker, alice, bob, send } = await start();
    broker.deliver = () => undefined;
    await send("held");
    await broker.untilPushed("held");
    await untilState(alice, "held", "stored");
    expect(await factsOf(alice, "held")).toMatchObject({ counts: { unsettled: 1, delivered: 0 } });
    expect(await bob.inbox()).toEqual([]);
  });

  test("the order has it seen in the positions in history that it gave before", async () => {
    const { broker, bob, send } = await start();
    const held: Frame[] = [];
    broker.deliver = (message) => void held.push(message);
    await send("first");
    await send("second");
    await expect.poll(() => held.length, soon).toBe(2);
    for (const message of held.toReversed()) broker.push(bob, message);
    await bob.untilArrived({ client_message_id: "first" });
    const items = await bob.inbox();
    const inOrder = items.toSorted((one, other) => (one.id < other.id ? -1 : 1));
    expect(inOrder.map((item) => item.client_message_id)).toEqual(["second", "first"]);
    const [second, first] = inOrder.map((item) => item.history_id);
    expect(first).toBeLessThan(second ?? 0);
  });
});

describe("a broker that lies about fates and receipts", () => {
  const ids = { broker_message_id: "0198c0de-0000-7000-8000-00000000aaaa", history_id: 4_711 };
  const accepted = (request: Frame) => ({
    status: 201,
    body: { ...ids, client_message_id: request.client_message_id, duplicate: false },
  });

  test("has its word for stored taken, until an audit asks it again and it does not remember the lie", async () => {
    const { broker, alice, bob, send } = await start();
    broker.instead.set("send", accepted);
    await send("lost");
    await expect.poll(async () => (await factsOf(alice, "lost")).broker_message_id, soon).toBe(ids.broker_message_id);
    expect(await bob.inbox()).toEqual([]);
    const { body } = await alice.client.audit();
    expect(body).toMatchObject({ balanced: false, imbalances: [{ layer: "broker", id: "lost" }] });
  });

  test("and remembers each lie is not found out from this host", async () => {
    const { broker, alice, send } = await start();
    broker.instead.set("send", accepted);
    broker.instead.set("fate", () => ({ status: 200, body: { fate: "committed", ...ids, history_available: true } }));
    const counts = { unsettled: 0, delivered: 1, expired: 0 };
    const delivery = { recipient_pubkey: "", state: "delivered", settled_at: 1_700_000_000_000 };
    broker.instead.set("message.state", () => ({
      status: 200,
      body: {
        ...ids,
        client_message_id: "lost",
        destination: { kind: "dm", ref: delivery.recipient_pubkey },
        sender_pubkey: alice.pubkey,
        accepted_at: 1_700_000_000_000,
        counts,
        deliveries: [],
        next_cursor: null,
      },
    }));
    await send("lost");
    await untilState(alice, "lost", "delivered");
  });

  test("and names another message for an id than it did before is found out by an audit", async () => {
    const { broker, alice, bob, send } = await start();
    await send("changed");
    await bob.untilArrived({ client_message_id: "changed" });
    await untilState(alice, "changed", "delivered");
    broker.twists.set("fate", (body) => ({ body: { ...body, ...ids } }));
    const { body } = await alice.client.audit();
    expect(body).toMatchObject({
      balanced: false,
      imbalances: [{ layer: "broker", id: "changed", what: expect.stringContaining(ids.broker_message_id) }],
    });
  });

  test("can have a message that it took sent again under a new id, and the receiver sees both", async () => {
    const { broker, alice, bob, send } = await start();
    const body = { error: "idempotency_key_reused", message: "taken", retryable: false };
    broker.twists.set("send", () => ({ status: 409, body }));
    await send("taken");
    await untilState(alice, "taken", "dead");
    await bob.untilArrived({ client_message_id: "taken", body: secret });
    broker.twists.clear();
    const { outbox_id } = await factsOf(alice, "taken");
    expect((await alice.client.requeue({ id: outbox_id ?? "" })).status).toBe(200);
    await expect.poll(async () => (await bob.inbox()).length, soon).toBe(2);
    const [one, two] = await bob.inbox();
    expect(one?.client_message_id).not.toBe(two?.client_message_id);
  });
});

describe("a broker that lies about members", () => {
  const listing = (change: (items: readonly Frame[]) => readonly Frame[]) => (body: Frame) => ({
    body: { ...body, items: change(body.items as Frame[]) },
  });
  const withBobAs = (pubkey: string) =>
    listing((items) => items.map((item) => (item.name === "bob" ? { ...item, pubkey } : item)));
  const withoutBob = listing((items) => items.filter(({ name }) => name !== "bob"));
  /** The list that a daemon asks for at its hello has come. */
  const untilListed = (member: MemberHome, current: string | null) =>
    expect
      .poll(async () => (await member.client.call("GET", "/v1/pins/bob")).body, soon)
      .toMatchObject({ current_pubkey: current });
  /** It does not give itself away by saying of a key that it is no member's. */
  const takesAll = () => ({ status: 200, body: { refusal: null, has_recipients: true } });

  test("has its first word for a name believed, and is found out by the code that both compare", async () => {
    const { broker, alice, bob } = await start();
    const theirs = generateMemberKeys().ed25519.public_key;
    broker.twists.set("members.list", withBobAs(theirs));
    broker.instead.set("destination.state", takesAll);
    await broker.meetAgain(alice);
    await untilListed(alice, theirs);
    const sent = await alice.client.send({ to: "@bob", message: secret, client_message_id: "first-use" });
    expect(sent.status).toBe(202);
    const pinOf = async (member: MemberHome, name: string) =>
      (await member.client.call("GET", `/v1/pins/${name}`)).body as Readonly<Record<string, unknown>>;
    const [bobs, alices] = [await pinOf(alice, "bob"), await pinOf(bob, "alice")];
    expect(bobs).toMatchObject({ trust: "pinned", pubkey: theirs });
    expect(alices.pubkey).toBe(alice.pubkey);
    expect(bobs.code).not.toBe(alices.code);
  });

  test("cannot make a pin go by listing no member of that name for a while", async () => {
    const { broker, alice, bob, send } = await start();
    await send("pins");
    broker.twists.set("members.list", withoutBob);
    await broker.meetAgain(alice);
    await untilListed(alice, null);
    const gone = await alice.client.send({ to: "@bob", message: secret, client_message_id: "gone" });
    expect(gone).toMatchObject({ status: 404, body: { error: "destination_not_found" } });
    const theirs = generateMemberKeys().ed25519.public_key;
    broker.twists.set("members.list", withBobAs(theirs));
    await broker.meetAgain(alice);
    await untilListed(alice, theirs);
    const swapped = await alice.client.send({ to: "@bob", message: secret, client_message_id: "swapped" });
    expect(swapped).toMatchObject({ status: 409, body: { error: "peer_key_changed", pinned_pubkey: bob.pubkey } });
  });

  test("cannot roll a name back to a key that its user has replaced", async () => {
    const { broker, alice, bob } = await start();
    const before = generateMemberKeys().ed25519.public_key;
    const rolledBack = withBobAs(before);
    const pin = (pubkey: string) => alice.client.call("POST", "/v1/pins/bob/trust", { pubkey });
    broker.twists.set("members.list", rolledBack);
    await broker.meetAgain(alice);
    await untilListed(alice, before);
    expect((await pin(before)).status).toBe(200);
    broker.twists.clear();
    await broker.meetAgain(alice);
    await untilListed(alice, bob.pubkey);
    expect((await pin(bob.pubkey)).status).toBe(200);
    broker.twists.set("members.list", rolledBack);
    await broker.meetAgain(alice);
    await untilListed(alice, before);
    const sent = await alice.client.send({ to: "@bob", message: secret, client_message_id: "rolled-back" });
    expect(sent).toMatchObject({ status: 409, body: { error: "peer_key_changed", pinned_pubkey: bob.pubkey } });
  });

  test("goes on listing a former member, for whom alone messages are then sealed", async () => {
    const { broker, alice, bob, send } = await start();
    await send("pins");
    let listed: Frame | undefined;
    let times = 0;
    broker.twists.set("members.list", (body) => {
      times++;
      listed ??= body;
      return { body: listed };
    });
    await broker.meetAgain(alice);
    await expect.poll(() => times, soon).toBe(1);
    await withBroker(broker.optionsOf(alice), (call) => call("member.revoke", { pubkey: bob.pubkey }));
    broker.instead.set("destination.state", takesAll);
    const before = times;
    await broker.meetAgain(alice);
    await expect.poll(() => times, soon).toBeGreaterThan(before);
    await untilListed(alice, bob.pubkey);
    await send("to-a-former-member");
    expect(await factsOf(alice, "to-a-former-member")).toMatchObject({ destination: { kind: "dm", ref: bob.pubkey } });
  });

  test("and lists them without end is not listened to for ever, and the names that are known stay", async () => {
    const { broker, alice } = await start();
    let asked = 0;
    broker.twists.set("members.list", (body) => ({ body: { ...body, next_cursor: `page-${++asked}` } }));
    await broker.meetAgain(alice);
    await expect.poll(() => alice.events("member_list_failed").length, soon).toBe(1);
    const sent = await alice.client.send({ to: "@bob", message: secret, client_message_id: "still-known" });
    expect(sent.status).toBe(202);
  });
});

describe("a broker that turns on a daemon", () => {
  test("sends it to other addresses, where it says nothing but the question for the proof", async () => {
    const { broker, alice } = await start();
    const other = await PortThief.start(0, createPeerKeys(), (victim) => victim.prove({}));
    onTestFinished(() => other.stop());
    broker.tell(alice, { type: "brokers_changed", brokers: [`http://127.0.0.1:${other.port}`] });
    broker.close(alice, 1012);
    await expect.poll(() => other.victims.length, soon).toBeGreaterThan(0);
    const [victim] = other.victims;
    await expect.poll(() => victim?.heard.length, soon).toBe(1);
    await untilOnline(alice.client);
    for (const { heard } of other.victims) expect(heard.map(({ type }) => type)).toEqual(["connect"]);
  });

  test("says that its membership has ended, and is not believed any more once it says otherwise", async () => {
    const { broker, alice } = await start();
    const refused = { error: "unauthorized", message: "no", retryable: false, membership: "ended" };
    broker.instead.set("hello", () => ({ status: 401, body: refused }));
    broker.close(alice, 4005);
    await expect.poll(async () => (await brokerOf(alice.client)).reason, soon).toBe("member_revoked");
    const sent = await alice.client.send({ to: "@bob", message: secret, client_message_id: "ended" });
    expect(sent).toMatchObject({ status: 403, body: { error: "membership_ended" } });
    broker.instead.clear();
    await untilOnline(alice.client);
    const again = await alice.client.send({ to: "@bob", message: secret, client_message_id: "ended" });
    expect(again.status).toBe(202);
  });

  test("ends it by saying that another daemon of the member came, and nothing that was queued is lost", async () => {
    const { broker, alice, bob, send } = await start();
    broker.instead.set("send", () => ({ status: 503, body: { error: "stopping", message: "x", retryable: true } }));
    await send("kept");
    broker.close(alice, 4003);
    await alice.daemon.stopped;
    broker.instead.clear();
    await untilOnline(await alice.startDaemon());
    await bob.untilArrived({ client_message_id: "kept", body: secret });
  });
});

describe("a broker that lies about what members share", () => {
  test("has a document shown that no member ever committed", async () => {
    const { broker, alice } = await start();
    const document = { value: { owner: "mallory" } };
    const read = () =>
      withBroker(broker.optionsOf(alice), async (call) => {
        await call("space.create", { name: "plan" });
        return call("space.entity", { space: "plan", entityId: "task:1" });
      });
    await expect(read()).rejects.toMatchObject({ code: "entity_not_found" });
    broker.twists.set("space.entity", () => ({ status: 200, body: { id: "task:1", seq: 1, branch: "", document } }));
    expect(await read()).toMatchObject({ document });
  });
});

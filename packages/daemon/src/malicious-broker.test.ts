// Two daemons and a broker between them that lies (MSG-27, MSG-33): it relabels, replays, reflects and redirects what alice's daemon
// sealed for bob's. Its other moves are tried on whole processes in tests/malicious-broker.deep.test.ts. Whatever it does, bob's daemon shows the text as alice said it, or not at all.
import { readFileSync } from "node:fs";
import { peerCode } from "@claudemesh/client/internal/peer-code";
import { generateMemberKeys } from "@claudemesh/client/keys";
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import type { Meta } from "@claudemesh/protocol/messages/envelope";
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import { describe, expect, it } from "vitest";
import { delivery } from "./testing/deliveries.ts";
import { EventReader } from "./testing/event-reader.ts";
import { settle } from "./testing/scripted-link.ts";
import { startTestDaemon, type TestDaemon } from "./testing/test-daemon.ts";

const secret = "the launch code is 0451-tulip";

async function startPair() {
  const [alice, bob] = [await startTestDaemon(), await startTestDaemon()];
  alice.link.goOnline();
  const keyOf = (daemon: TestDaemon) => daemon.keys.ed25519.public_key;
  let historyId = 0;
  /** What alice's daemon gives the broker for one send to bob. */
  const sendToBob = async (id: string, given: object = {}): Promise<AcceptRequest> => {
    const { status } = await alice.send({
      to: `dm:${keyOf(bob)}`,
      message: secret,
      client_message_id: id,
      meta: { thread: "t-1" },
      reply_to_id: "b-99",
      priority: "now",
      ...given,
    });
    expect(status).toBe(202);
    const { input, answer } = await alice.link.requested("send");
    answer(201, { broker_message_id: `broker-${id}`, history_id: ++historyId });
    return input as unknown as AcceptRequest;
  };
  /** The broker delivers it to a daemon, as an honest one would except for the change. */
  const deliver = async (to: TestDaemon, frame: AcceptRequest, change: Partial<HistoryItem> = {}) => {
    to.link.automatic.set("ack", () => ({ type: "answered", status: 200, body: {} }));
    const id = ++historyId;
    to.link.options?.onPush({
      type: "message",
      history_id: id,
      broker_message_id: `delivered-${id}`,
      client_message_id: frame.client_message_id,
      destination: frame.destination,
      sender_pubkey: keyOf(alice),
      envelope_version: frame.envelope_version ?? "1",
      body_base64: frame.body_base64 ?? "",
      meta: (frame.meta as Meta | undefined) ?? null,
      priority: frame.priority ?? "next",
      reply_to_id: frame.reply_to_id ?? null,
      accepted_at: 1_700_000_000_000,
      ...change,
    });
    await settle();
    const { body } = await to.call("GET", "/v1/inbox");
    return body.items.find((item: { history_id: number }) => item.history_id === id);
  };
  return { alice, bob, keyOf, sendToBob, deliver };
}

const self = (daemon: TestDaemon) => ({ kind: "dm", ref: daemon.keys.ed25519.public_key }) as const;

/** Kept and marked, and not a word of what was written. */
function expectNotShown(item: Record<string, unknown>, unreadable: true | "relabelled"): void {
  expect(item).toMatchObject({ body: null, unreadable, sealed: true, meta: null });
  expect(item).not.toHaveProperty("body_base64");
  expect(JSON.stringify(item)).not.toMatch(/tulip|t-1/);
}

describe("a broker that passes a message on as it came", () => {
  it("sees neither text nor meta, and the receiver sees all of it", async () => {
    const { bob, sendToBob, deliver } = await startPair();
    const frame = await sendToBob("m-1");
    expect(frame).toMatchObject({ envelope_version: "3", priority: "now", reply_to_id: "b-99" });
    expect(frame).not.toHaveProperty("meta");
    expect(Buffer.from(frame.body_base64 ?? "", "base64").toString("latin1")).not.toMatch(/tulip|t-1/);
    const item = await deliver(bob, frame);
    expect(item).toMatchObject({ body: secret, sealed: true, meta: { thread: "t-1" }, priority: "now" });
    expect(item).toMatchObject({ reply_to_id: "b-99", client_message_id: "m-1", topic: null });
    expect(item).not.toHaveProperty("unreadable");
  });
});

describe("a broker that relabels", () => {
  it.each([
    ["the client id", { client_message_id: "m-2" }],
    ["the priority", { priority: "low" }],
    ["the message that it answers", { reply_to_id: "b-1" }],
    ["a reply into none", { reply_to_id: null }],
    ["the meta", { meta: { thread: "t-2" } }],
    ["the meta by an empty one", { meta: {} }],
  ] satisfies [string, Partial<HistoryItem>][])("%s does not get the text shown", async (_, change) => {
    const { bob, sendToBob, deliver } = await startPair();
    expectNotShown(await deliver(bob, await sendToBob("m-1"), change), "relabelled");
    expect((await bob.call("GET", "/v1/health")).body.inbox.unreadable).toBe(1);
    expect((await bob.call("GET", "/v1/inbox/search?q=tulip")).body.items).toEqual([]);
  });

  it("the sender does not even get the box opened", async () => {
    const { bob, sendToBob, deliver } = await startPair();
    const mallory = generateMemberKeys().ed25519.public_key;
    expectNotShown(await deliver(bob, await sendToBob("m-1"), { sender_pubkey: mallory }), true);
  });

  it("a box of version 3 as one of version 2, or as no box, shows nothing of it", async () => {
    const { bob, sendToBob, deliver } = await startPair();
    const frame = await sendToBob("m-1");
    expectNotShown(await deliver(bob, frame, { envelope_version: "2" }), true);
    const item = await deliver(bob, frame, { envelope_version: "1" });
    expect(item).toMatchObject({ sealed: false });
    expect(JSON.stringify(item)).not.toMatch(/tulip/);
  });

  it("one message still passes the honest one on", async () => {
    const { bob, sendToBob, deliver } = await startPair();
    const frame = await sendToBob("m-1");
    expectNotShown(await deliver(bob, frame, { priority: "low" }), "relabelled");
    expect(await deliver(bob, frame)).toMatchObject({ body: secret });
  });
});

describe("a broker that moves a box elsewhere", () => {
  it("cannot replay it under another id", async () => {
    const { bob, sendToBob, deliver } = await startPair();
    const frame = await sendToBob("m-1");
    expect(await deliver(bob, frame)).toMatchObject({ body: secret });
    for (const id of ["m-2", "m-3"]) expectNotShown(await deliver(bob, frame, { client_message_id: id }), "relabelled");
  });

  it("cannot reflect it to its sender as if the receiver had written it", async () => {
    const { alice, bob, keyOf, sendToBob, deliver } = await startPair();
    const frame = await sendToBob("m-1");
    const reflected = { sender_pubkey: keyOf(bob), destination: { kind: "dm", ref: keyOf(alice) } } as const;
    expectNotShown(await deliver(alice, frame, reflected), "relabelled");
  });

  it("cannot pass the answer to one message off as the answer to another", async () => {
    const { bob, sendToBob, deliver } = await startPair();
    const [yes, no] = [await sendToBob("yes", { reply_to_id: "b-1" }), await sendToBob("no", { reply_to_id: "b-2" })];
    const swapped = { body_base64: no.body_base64 ?? "" };
    expectNotShown(await deliver(bob, yes, swapped), "relabelled");
  });
});

describe("a broker that brings a text in clear to the wrong member", () => {
  it.each([
    ["as one for its sender", (alice: TestDaemon) => self(alice)],
    ["out of a queue", () => ({ kind: "queue", ref: "jobs" }) as const],
  ])("%s has it kept and not shown, nor found", async (_, destinationFor) => {
    const { alice, bob, sendToBob, deliver } = await startPair();
    const clear = { envelope_version: "1", body: secret } as const;
    const wrong = { ...clear, destination: destinationFor(alice) };
    const item = await deliver(bob, await sendToBob("m-1"), wrong);
    expect(item).toMatchObject({ body: null, unreadable: "relabelled", sealed: false });
    expect(JSON.stringify(item)).not.toMatch(/tulip/);
    expect((await bob.call("GET", "/v1/inbox/search?q=tulip")).body.items).toEqual([]);
  });
});

describe("a broker that swaps the key behind a name", () => {
  const bobKey = generateMemberKeys().ed25519.public_key;
  const otherKey = generateMemberKeys().ed25519.public_key;
  const listing = (pubkey: string | undefined) => () => {
    const items = pubkey === undefined ? [] : [{ pubkey, name: "bob" }];
    return { type: "answered", status: 200, body: { items } } as const;
  };

  /** Alice has written to @bob once; what the broker says of that member after that is up to the test. */
  async function startPinned() {
    const alice = await startTestDaemon();
    alice.link.automatic.set("members.list", listing(bobKey));
    alice.link.goOnline();
    await settle();
    const send = (id: string, to = "@bob") => alice.send({ to, message: "secret", client_message_id: id });
    expect((await send("first")).status).toBe(202);
    const swap = async (pubkey: string | undefined) => {
      alice.link.automatic.set("members.list", listing(pubkey));
      alice.link.goOffline();
      alice.link.goOnline();
      await settle();
    };
    const refOf = async (id: string) => (await alice.call("GET", `/v1/outbox/${id}`)).body.row.destination_ref;
    return { alice, send, swap, refOf };
  }

  type Listed = { readonly pubkey: string; readonly name: string };

  /** Alice's daemon with a list of members, and a message of each key that is asked about. */
  async function startListed(members: readonly Listed[]) {
    const daemon = await startTestDaemon();
    daemon.link.automatic.set("ack", () => ({ type: "answered", status: 200, body: {} }));
    daemon.link.automatic.set("message.state", () => ({ type: "answered", status: 404, body: { error: "not_found" } }));
    const list = async (items: readonly Listed[]) => {
      daemon.link.automatic.set("members.list", () => ({ type: "answered", status: 200, body: { items } }));
      daemon.link.goOffline();
      daemon.link.goOnline();
      await settle();
    };
    await list(members);
    const came = new Map<string, number>();
    /** The sender's name in the inbox, and where the message is looked for. */
    const shown = async (pubkey: string) => {
      const historyId = came.get(pubkey) ?? came.size + 1;
      if (!came.has(pubkey)) {
        came.set(pubkey, historyId);
        const item = delivery(historyId, { sender_pubkey: pubkey, destination: self(daemon) });
        daemon.link.options?.onPush({ type: "message", ...item });
        await settle();
      }
      const { body } = await daemon.call("GET", "/v1/inbox");
      const item = body.items.find((each: { history_id: number }) => each.history_id === historyId);
      const message = await daemon.call("GET", `/v1/messages/${item.client_message_id}`);
      return { inbox: item.sender_name, message: message.body.sender_name };
    };
    return { alice: { daemon, list }, shown };
  }

  it("gets nothing sealed for it, and the sender hears of both keys and of the way out", async () => {
    const { alice, send, swap, refOf } = await startPinned();
    await swap(otherKey);
    const refused = await send("second");
    expect(refused).toMatchObject({
      status: 409,
      body: { error: "peer_key_changed", name: "bob", pinned_pubkey: bobKey, pubkey: otherKey },
    });
    expect(refused.body.message).toContain("claudemesh peer trust bob");
    expect((await alice.call("GET", "/v1/outbox/second")).status).toBe(404);
    // What was accepted before answers from its row, and a key is a key.
    expect(await send("first")).toMatchObject({ status: 202, body: { duplicate: true } });
    expect(await refOf("first")).toBe(bobKey);
    expect((await send("third", `dm:${otherKey}`)).status).toBe(202);
  });

  it("is counted and reported once, and a message from the new key does not carry the old one's name", async () => {
    const { alice, swap } = await startPinned();
    await swap(otherKey);
    await swap(otherKey);
    const { body } = await alice.call("GET", "/v1/pins");
    expect(body.items).toMatchObject([
      { name: "bob", trust: "changed", pubkey: bobKey, current_pubkey: otherKey, verified_at: null },
    ]);
    const log = readFileSync(alice.paths.log, "utf8");
    expect(log.match(/"peer_key_changed"/g)).toHaveLength(1);
    alice.link.options?.onPush({
      type: "message",
      ...delivery(7, { sender_pubkey: otherKey, destination: self(alice) }),
    });
    await settle();
    const inbox = await alice.call("GET", "/v1/inbox");
    expect(inbox.body.items).toMatchObject([{ sender_name: null, sealed: false }]);
  });

  it("shows a caller that asks for the name's messages none of that key's, and names both keys instead", async () => {
    const { alice, swap } = await startPinned();
    const arrive = (historyId: number, sender_pubkey: string) =>
      alice.link.options?.onPush({
        type: "message",
        ...delivery(historyId, { sender_pubkey, destination: self(alice) }),
      });
    arrive(7, bobKey);
    arrive(8, otherKey);
    await settle();
    const fromBob = async () => {
      const { status, body } = await alice.call("GET", "/v1/inbox?from=bob");
      return { status, body, keys: body.items?.map((item: { sender_pubkey: string }) => item.sender_pubkey) };
    };
    expect((await fromBob()).keys).toEqual([bobKey]);
    await swap(otherKey);
    const refusal = { error: "peer_key_changed", name: "bob", pinned_pubkey: bobKey, pubkey: otherKey };
    expect(await fromBob()).toMatchObject({ status: 409, body: refusal });
    await swap(undefined);
    expect((await fromBob()).keys).toEqual([bobKey]);
  });

  it("in time for a message does not have that message shown under the name once another member has it", async () => {
    const { alice, shown } = await startListed([{ pubkey: otherKey, name: "bob" }]);
    expect(await shown(otherKey)).toEqual({ inbox: "bob", message: "bob" });
    await alice.list([{ pubkey: bobKey, name: "bob" }]);
    expect(await shown(otherKey)).toEqual({ inbox: null, message: null });
    expect(await shown(bobKey)).toEqual({ inbox: "bob", message: "bob" });
  });

  it("or gives it to two, in whatever case, shows keys for both, until one of them is the one that is known", async () => {
    const { alice, shown } = await startListed([
      { pubkey: bobKey, name: "bob" },
      { pubkey: otherKey, name: "Bob" },
    ]);
    for (const key of [bobKey, otherKey]) expect(await shown(key)).toEqual({ inbox: null, message: null });
    expect((await alice.daemon.send({ to: "@bob", message: "x", client_message_id: "first" })).status).toBe(202);
    expect(await shown(bobKey)).toEqual({ inbox: "bob", message: "bob" });
    expect(await shown(otherKey)).toEqual({ inbox: null, message: null });
  });

  it("gets no name shown for the new key where a message is looked up, nor when that key leaves, and a mark where it joins", async () => {
    const { alice, swap } = await startPinned();
    await swap(otherKey);
    alice.link.automatic.set("ack", () => ({ type: "answered", status: 200, body: {} }));
    alice.link.options?.onPush({
      type: "message",
      ...delivery(7, { client_message_id: "other", sender_pubkey: otherKey, destination: self(alice) }),
    });
    await settle();
    alice.link.automatic.set("message.state", () => ({ type: "answered", status: 404, body: {} }));
    expect((await alice.call("GET", "/v1/messages/other")).body).toMatchObject({ sender_name: null });
    const reader = await EventReader.open(alice);
    const profile = {
      summary: "",
      status: "",
      visible: true,
      avatar: "",
      title: "",
      bio: "",
      capabilities: [],
    } as const;
    const peer = { pubkey: otherKey, name: "bob", role: "member", connected_at: 5, ...profile } as const;
    alice.link.options?.onPush({ type: "peer_join", ...peer });
    alice.link.options?.onPush({ type: "peer_leave", pubkey: otherKey });
    await reader.untilCount("peer_leave", 1);
    expect(reader.of("peer_join").map(({ data }) => data)).toMatchObject([{ name: "bob", trust: "changed" }]);
    expect(reader.of("peer_leave").map(({ data }) => data)).toEqual([{ pubkey: otherKey, name: null }]);
  });

  it("is let through by the user alone, for exactly the key that was shown, and a verified mark goes", async () => {
    const { alice, send, swap, refOf } = await startPinned();
    const verify = await alice.call("POST", "/v1/pins/bob/verify", { json: { pubkey: bobKey } });
    expect(verify).toMatchObject({ status: 200, body: { trust: "verified" } });
    await swap(otherKey);
    const trust = (pubkey: string) => alice.call("POST", "/v1/pins/bob/trust", { json: { pubkey } });
    expect(await trust(bobKey)).toMatchObject({ status: 409, body: { error: "peer_key_changed" } });
    expect((await send("second")).status).toBe(409);
    expect(await trust(otherKey)).toMatchObject({ status: 200, body: { trust: "pinned", verified_at: null } });
    expect((await send("second")).status).toBe(202);
    expect(await refOf("second")).toBe(otherKey);
  });

  it("is remembered over a restart, and forgiven when the pinned key is back", async () => {
    const { alice, swap } = await startPinned();
    await swap(otherKey);
    await alice.daemon.stop();
    const again = await startTestDaemon({ at: alice });
    expect((await again.send({ to: "@bob", message: "x", client_message_id: "second" })).status).toBe(409);
    again.link.automatic.set("members.list", listing(bobKey));
    again.link.goOnline();
    await settle();
    expect((await again.send({ to: "@bob", message: "x", client_message_id: "second" })).status).toBe(202);
  });

  it("shows a code that both sides share, and that another key changes", async () => {
    const { alice, swap } = await startPinned();
    const code = async () => (await alice.call("GET", "/v1/pins/bob")).body.code;
    const before = await code();
    expect(before).toMatch(/^(?:[0-9]{5} ){7}[0-9]{5}$/);
    expect(before).toBe(await peerCode(bobKey, alice.keys.ed25519.public_key));
    await swap(otherKey);
    expect(await code()).not.toBe(before);
    expect((await alice.call("GET", "/v1/pins/missing")).status).toBe(404);
  });
});

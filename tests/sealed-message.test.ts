// One message all the way: sealed at the sender with its meta, opaque at the broker, readable at the receiver with
// everything that was said (MSG-13).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runCli, runJson } from "./support/process.ts";
import { type Peer, until, World } from "./support/world.ts";

describe("a message between two peers", () => {
  const world = new World();
  let alice: Peer;
  let bob: Peer;
  beforeAll(async () => {
    [alice, bob] = await world.startWithPair();
    await Promise.all([alice.start(), bob.start()]);
  });
  afterAll(() => world.end());

  const arrival = (peer: Peer, id: string) =>
    until(`${id} arrives at ${peer.name}`, async () =>
      (await peer.inbox()).find((item) => item.client_message_id === id),
    );

  test("a direct message is readable at the receiver and nowhere in the broker's store", async () => {
    const secret = "the launch code is 0451-tulip";
    const meta = { fruit: "quince-1312" };
    await alice.client.send({ to: "@bob", message: secret, client_message_id: "sealed-1", meta });
    const item = await arrival(bob, "sealed-1");
    expect(item).toMatchObject({ body: secret, meta, sender_name: "alice", topic: null, sealed: true });
    const db = new DatabaseSync(world.storePath, { readOnly: true });
    const row = db
      .prepare("SELECT body, meta, envelope_version FROM message_queue WHERE client_message_id = 'sealed-1'")
      .get();
    db.close();
    expect(row?.envelope_version).toBe("3");
    expect(row?.meta).toBe("");
    expect(Buffer.from(row?.body as Uint8Array).includes("tulip")).toBe(false);
    for (const file of [world.storePath, `${world.storePath}-wal`]) {
      for (const word of ["tulip", "quince"]) expect(readFileSync(file).includes(word), file).toBe(false);
    }
  });

  test("the request's own fingerprint stays at home: the broker holds only that of the sealed envelope", async () => {
    await alice.client.send({ to: "@bob", message: "guess me", client_message_id: "sealed-2" });
    await arrival(bob, "sealed-2");
    const outbox = new DatabaseSync(join(alice.folder, "outbox.db"), { readOnly: true });
    const own = outbox
      .prepare("SELECT request_fingerprint, wire_fingerprint FROM outbox WHERE client_message_id = 'sealed-2'")
      .get();
    outbox.close();
    const broker = new DatabaseSync(world.storePath, { readOnly: true });
    const held = broker
      .prepare("SELECT request_fingerprint FROM client_message_dedupe WHERE client_message_id = 'sealed-2'")
      .get();
    broker.close();
    expect(held?.request_fingerprint).toEqual(own?.wire_fingerprint);
    expect(held?.request_fingerprint).not.toEqual(own?.request_fingerprint);
  });

  test.for([
    ["large doubles", { n: 1e16, small: 1e-7, negative: -0.5 }],
    ["keys that need escapes", { p: 1, "\\": 2, "\n": 3, '"': 4 }],
    ["keys that objects already have", JSON.parse('{"__proto__":{"x":1},"constructor":2}')],
    ["text beyond the basic plane", { "😀": "ﬀ\u2028" }],
  ])("meta with %s arrives as it was sent", async ([name, meta]) => {
    const id = `meta-${String(name).replaceAll(" ", "-")}`;
    const { status } = await alice.client.send({
      to: "@bob",
      message: "see meta",
      client_message_id: id,
      meta,
    } as never);
    expect(status).toBe(202);
    const item = await arrival(bob, id);
    expect(JSON.stringify(item.meta, Object.keys(item.meta ?? {}).sort())).toBe(
      JSON.stringify(meta, Object.keys(meta as object).sort()),
    );
  });

  test("bytes that are no text arrive as bytes", async () => {
    const bytes = Buffer.from([0xff, 0x00, 0xfe, 0x80]);
    await alice.client.send({ to: "@bob", message_base64: bytes.toString("base64"), client_message_id: "bytes-1" });
    expect(await arrival(bob, "bytes-1")).toMatchObject({ body_base64: bytes.toString("base64") });
  });

  test("a topic message reaches every subscriber but its sender", async () => {
    await runJson(["topic", "create", "builds"], { home: alice.home });
    await runJson(["topic", "subscribe", "builds"], { home: alice.home });
    await runJson(["topic", "subscribe", "builds"], { home: bob.home });
    await alice.client.send({ to: "#builds", message: "build 42 is green", client_message_id: "topic-1" });
    expect(await arrival(bob, "topic-1")).toMatchObject({ topic: "builds", body: "build 42 is green", sealed: false });
    await alice.client.send({ to: "@self", message: "after it", client_message_id: "topic-2" });
    await arrival(alice, "topic-2");
    expect((await alice.inbox()).map((item) => item.client_message_id)).not.toContain("topic-1");
  });

  test("a message to a topic that is not there, sent while the broker is away, ends dead and says why", async () => {
    await world.whileBrokerIsAway(() =>
      alice.client.send({ to: "#nowhere", message: "hello?", client_message_id: "dead-1" }),
    );
    await until("the row is dead", async () =>
      (await alice.outbox()).find((row) => row.client_message_id === "dead-1" && row.status === "dead"),
    );
    const again = await runCli(["send", "#nowhere", "hello?", "--id", "dead-1", "--json"], { home: alice.home });
    expect(again.code).toBe(4);
    expect(JSON.parse(again.stdout)).toMatchObject({
      conflict: "outbox_dead_fingerprint_match",
      reason: expect.stringContaining("destination_not_found"),
    });
  });
});

// SQLite through the messages suite, what a retry costs there, and what sends of one transaction share.
import { type AcceptRequest, readAcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import type { RateLimit } from "../../core/rate-limit.ts";
import type { CommittedAccept } from "../../ports.ts";
import { describeMessagesSuite } from "../suites/messages.suite.ts";
import { dm, queue, send, topic, World } from "../suites/world.ts";
import { openMessages, SqliteHarness } from "./testing/sqlite-harness.ts";

const harness = new SqliteHarness();
afterAll(() => harness.end());

describe("messages on SQLite", () => describeMessagesSuite(harness));

async function startWatched(rate?: RateLimit): Promise<{ world: World; db: Sqlite }> {
  let db: Sqlite | undefined;
  class WatchedHarness extends SqliteHarness {
    override async open(given?: RateLimit) {
      db = openSqlite({ path: this.path });
      return openMessages(db, given);
    }
  }
  const watched = new WatchedHarness();
  onTestFinished(() => watched.end());
  const world = await World.start(watched, rate);
  if (db === undefined) throw new Error("no database was opened");
  return { world, db };
}

describe("a retry of a committed send", () => {
  test("runs one statement, which reads by the primary key, and writes nothing", async () => {
    const { world, db } = await startWatched();
    const [alice, bob] = await world.threeMembers();
    await world.accept(alice, send("m1", dm(bob)));
    const changes = () => db?.sql<{ n: number }>("SELECT total_changes() AS n").get()?.n;
    const before = changes();
    expect(before).toBeGreaterThan(0);

    const statements = [vi.spyOn(db, "sql"), vi.spyOn(db, "sqlTuples")];
    const transactions = vi.spyOn(db, "transaction");
    expect(await world.accept(alice, send("m1", dm(bob)))).toMatchObject({ type: "duplicate" });
    const [asked, ...others] = statements.flatMap(({ mock }) => mock.calls.map(([text]) => text));
    expect(others).toEqual([]);
    expect(transactions).not.toHaveBeenCalled();
    vi.restoreAllMocks();

    expect(changes()).toBe(before);
    const plan = db.sql<{ detail: string }>(`EXPLAIN QUERY PLAN ${asked}`).all("mesh-1", "m1");
    expect(plan.map(({ detail }) => detail)).toEqual([
      "SEARCH client_message_dedupe USING PRIMARY KEY (mesh_id=? AND client_message_id=?)",
    ]);
    await world.close();
  });
});

/** Past the look-up, so that what is submitted in one turn is known to share one transaction, in this order. */
function offer(world: World, sender: string, request: AcceptRequest): Promise<CommittedAccept> {
  const { clientMessageId, envelope, mentions } = readAcceptRequest(request);
  return world.store.accepts.accept({
    meshId: world.meshId,
    senderPubkey: sender,
    clientMessageId,
    brokerMessageId: `broker-${clientMessageId}`,
    envelope,
    fingerprint: world.fenceRequest(sender, request).fingerprint,
    mentions,
    acceptedAtMs: world.nowMs,
    isOutdated: () => false,
    expiresAtMs: undefined,
  });
}

const ends = async (accepts: readonly Promise<CommittedAccept>[]) =>
  (await Promise.all(accepts)).map(({ result }) => (result.type === "refused" ? result.code : result.type));

describe("sends of one transaction", () => {
  test("are cut by the deliveries that they have, so that no send waits for those of a crowded topic", async () => {
    const { world, db } = await startWatched();
    const [alice] = await world.threeMembers();
    await world.addTopic("crowded");
    const readers = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5000)";
    db.exec(`INSERT INTO member (mesh_id, pubkey, name, role, joined_at)
      ${readers} SELECT 'mesh-1', 'reader-' || n, 'reader-' || n, 'member', 1 FROM r`);
    db.exec(`INSERT INTO topic_subscription (mesh_id, topic, member_pubkey, subscribed_at)
      ${readers} SELECT 'mesh-1', 'crowded', 'reader-' || n, 1 FROM r`);
    const transactions = vi.spyOn(db, "transaction");
    const ids = ["m1", "m2", "m3", "m4", "m5"];
    const accepts = await Promise.all(ids.map((id) => offer(world, alice, send(id, topic("crowded")))));
    expect(accepts.map(({ result }) => result)).toMatchObject(ids.map((_, at) => ({ historyId: at + 1 })));
    expect(transactions).toHaveBeenCalledTimes(3);
    vi.restoreAllMocks();
    expect(await world.effects()).toMatchObject({ history: 5, delivery: 25_000 });
    await world.close();
  });

  test("read what they share once, and write what they count once", async () => {
    const { world, db } = await startWatched();
    const [alice, bob, carol] = await world.threeMembers();
    await world.addTopic("news", [bob, carol]);
    const statements = vi.spyOn(db, "sql");
    const accepts = Array.from({ length: 20 }, (_, n) => offer(world, alice, send(`m${n}`, topic("news"))));
    expect(new Set(await ends(accepts))).toEqual(new Set(["accepted"]));
    const texts = statements.mock.calls.map(([text]) => text);
    vi.restoreAllMocks();
    const shared = texts.filter((text) => /^SELECT|_counter|rate_limit_window/.test(text));
    expect(shared.length).toBe(new Set(shared).size);
    expect(await world.query("SELECT last_history_id FROM mesh_history_counter")).toEqual([{ last_history_id: 20 }]);
    expect(await world.query("SELECT used FROM rate_limit_window")).toEqual([{ used: 20 }]);
    await world.close();
  });

  test("see what was fenced, subscribed and deleted between them", async () => {
    const { world } = await startWatched();
    const [alice, bob, carol] = await world.threeMembers();
    await world.addTopic("news", [bob]);
    await world.addTopic("closed", [alice], "subscribers");
    const { fences, topics } = world.store;
    const fenced = send("m2", topic("news"));
    const accepts: Promise<CommittedAccept>[] = [];
    const add = (request: AcceptRequest) => accepts.push(offer(world, alice, request));
    add(send("m1", topic("news")));
    const fate = fences.fence(world.fenceRequest(alice, fenced), world.nowMs, undefined);
    add(fenced);
    const subscribed = topics.subscribe(world.meshId, "news", carol, world.nowMs);
    add(send("m3", topic("news")));
    const deleted = topics.delete(world.meshId, "news");
    add(send("m4", topic("news")));
    add(send("m5", topic("closed")));
    const left = topics.unsubscribe(world.meshId, "closed", alice);
    add(send("m6", topic("closed")));
    add(send("m1", topic("news")));
    expect(await ends(accepts)).toEqual([
      "accepted",
      "fenced",
      "accepted",
      "destination_not_found",
      "accepted",
      "not_subscribed",
      "duplicate",
    ]);
    await Promise.all([fate, subscribed, deleted, left]);
    expect((await Promise.all(accepts)).map(({ recipients }) => recipients)).toEqual([
      [bob],
      [],
      [bob, carol],
      [],
      [],
      [],
      [],
    ]);
    await world.close();
  });

  test("each have one delivery for each of their own recipients, whichever sends share the batch", async () => {
    const { world } = await startWatched();
    const [alice, bob, carol] = await world.threeMembers();
    await world.addTopic("news", [alice, bob, carol]);
    await world.addTopic("quiet", []);
    await world.addQueue("jobs");
    const expected: { history_id: number; recipient_pubkey: string; broker_message_id: string }[] = [];
    const accepts: Promise<CommittedAccept>[] = [];
    let historyId = 0;
    const add = (sender: string, to: ReturnType<typeof dm>, recipients: readonly string[]) => {
      const id = `m${accepts.length}`;
      accepts.push(offer(world, sender, send(id, to)));
      if (to.ref === "nowhere") return;
      historyId++;
      for (const recipient_pubkey of recipients.toSorted()) {
        expected.push({ history_id: historyId, recipient_pubkey, broker_message_id: `broker-${id}` });
      }
    };
    for (let round = 0; round < 2; round++) {
      add(alice, topic("news"), [bob, carol]);
      add(alice, topic("news"), [bob, carol]);
      add(bob, topic("news"), [alice, carol]);
      add(alice, topic("nowhere"), []);
      add(bob, topic("news"), [alice, carol]);
      add(alice, topic("news"), [bob, carol]);
      add(alice, topic("quiet"), []);
      add(alice, topic("quiet"), []);
      add(alice, topic("news"), [bob, carol]);
      add(alice, dm(bob), [bob]);
      add(carol, dm(bob), [bob]);
      add(carol, dm(alice), [alice]);
      add(alice, queue("jobs"), []);
      add(carol, dm(alice), [alice]);
    }
    await Promise.all(accepts);
    const rows = "SELECT history_id, recipient_pubkey, broker_message_id FROM delivery_queue";
    expect(await world.query(`${rows} ORDER BY history_id, recipient_pubkey`)).toEqual(expected);
    await world.close();
  });

  test("leave nothing behind of those whose deliveries cannot be written", async () => {
    const { world } = await startWatched();
    const [alice, bob, carol] = await world.threeMembers();
    await world.addTopic("news", [bob, carol]);
    const inTheWay = `('${world.meshId}', 2, '${bob}', 'stray')`;
    await world.query(
      `INSERT INTO delivery_queue (mesh_id, history_id, recipient_pubkey, broker_message_id) VALUES ${inTheWay}`,
    );
    const accepts = ["m1", "m2", "m3"].map((id) => offer(world, alice, send(id, topic("news"))));
    expect((await Promise.allSettled(accepts)).map(({ status }) => status)).toEqual([
      "fulfilled",
      "rejected",
      "rejected",
    ]);
    for (const table of ["client_message_dedupe", "topic_message", "message_history", "rate_limit_id"]) {
      expect(await world.query(`SELECT client_message_id FROM ${table}`)).toEqual([{ client_message_id: "m1" }]);
    }
    expect(await world.query("SELECT broker_message_id FROM delivery_queue ORDER BY 1")).toEqual([
      { broker_message_id: "broker-m1" },
      { broker_message_id: "broker-m1" },
      { broker_message_id: "stray" },
    ]);
    await world.close();
  });

  test("share a budget that ends among them, and one of them offered twice spends once", async () => {
    const { world } = await startWatched({ limit: 2, windowSeconds: 60 });
    const [alice, bob] = await world.threeMembers();
    const accepts = ["m1", "m1", "m2", "m3", "m1"].map((id) => offer(world, alice, send(id, dm(bob))));
    expect(await ends(accepts)).toEqual(["accepted", "duplicate", "accepted", "rate_limited", "duplicate"]);
    const spent = (await Promise.all(accepts)).map(({ budgetSpent }) => budgetSpent ?? false);
    expect(spent).toEqual([true, false, true, false, false]);
    await world.close();
  });

  test("on both sides of a window's end spend from the window of their own time", async () => {
    const { world } = await startWatched({ limit: 2, windowSeconds: 60 });
    const [alice, bob] = await world.threeMembers();
    const beforeMs = world.nowMs - (world.nowMs % 60_000) - 1;
    const times = [beforeMs, beforeMs + 1, beforeMs, beforeMs + 1, beforeMs, beforeMs + 1];
    const accepts = times.map((nowMs, n) => {
      world.nowMs = nowMs;
      return offer(world, alice, send(`m${n}`, dm(bob)));
    });
    expect(await ends(accepts)).toEqual([...Array(4).fill("accepted"), "rate_limited", "rate_limited"]);
    expect(await world.query("SELECT used FROM rate_limit_window ORDER BY window_start")).toEqual([
      { used: 2 },
      { used: 2 },
    ]);
    await world.close();
  });
});

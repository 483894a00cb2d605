// What accepting on PostgreSQL does when transactions overlap: who waits for whom, in which order history grows, and what
// a lost connection leaves behind.
import type { Envelope } from "@claudemesh/protocol/messages/envelope";
import type { CommitHooks } from "@claudemesh/storage/commit-hooks";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { startFaultyProxy } from "../../../../../tests/support/faulty-proxy.ts";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { until } from "../../../../../tests/support/world.ts";
import type { MessagesStore, OfferedSend } from "../../ports.ts";
import { ampleRate, dm, noEffects, send, topic, World } from "../suites/world.ts";
import { uuidOf } from "./testing/named-ids.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("accepts");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("accepting on PostgreSQL", () => {
  const url = database?.url ?? "";
  const harness = new PostgresHarness(url);
  /** Sees what others do, also while the harness's own connection is inside a transaction. */
  const observer = new pg.Client({ connectionString: url });
  beforeAll(async () => {
    await harness.connect();
    await observer.connect();
  });
  afterAll(async () => {
    await harness.end();
    await observer.end();
  });

  let world: World;
  let alice: string;
  let bob: string;
  beforeEach(async () => {
    world = await World.start(harness, ampleRate);
    [alice, bob] = await world.threeMembers();
    return () => world.close();
  });

  async function openStore(hooks: Partial<CommitHooks> = {}, from = harness): Promise<MessagesStore> {
    const nothing = { before: () => undefined, after: () => undefined };
    const opened = await from.open(ampleRate, { ...nothing, ...hooks });
    onTestFinished(() => opened.close());
    return opened.store;
  }

  /** A store whose next transaction stops before its COMMIT until the test lets it go on, or fail. */
  async function openHeldStore() {
    const reached = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const store = await openStore({
      before: () => {
        reached.resolve();
        return gate.promise;
      },
    });
    return { store, reached: reached.promise, commit: gate.resolve, fail: gate.reject };
  }

  const accept = (store: MessagesStore, id: string, body = "hello", sender = alice) =>
    world.accept(sender, send(id, dm(bob), body), { store: store.accepts });

  /** So many connections wait for a lock that another transaction holds. */
  const untilWaiting = (count: number) =>
    until(`${count} transactions wait`, async () => {
      const { rows } = await observer.query<{ n: number }>(
        `SELECT count(*)::int AS n FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return rows[0]?.n === count;
    });

  const historyIds = async () => {
    const { rows } = await observer.query<{ id: number }>(
      "SELECT history_id::int AS id FROM mesh.message_history ORDER BY history_id",
    );
    return rows.map((row) => row.id);
  };

  describe("history ids", () => {
    test("follow the order of COMMIT: who comes second waits, and nothing below what was seen appears later", async () => {
      const first = await openHeldStore();
      const second = await openStore();
      const held = accept(first.store, "m1");
      await first.reached;
      const waiting = accept(second, "m2");
      await untilWaiting(1);
      expect(await historyIds()).toEqual([]);
      first.commit();
      expect(await held).toMatchObject({ type: "accepted", historyId: 1 });
      expect(await waiting).toMatchObject({ type: "accepted", historyId: 2 });
    });

    test("of a transaction that fails are given to the next, so that there is no gap", async () => {
      const first = await openHeldStore();
      const second = await openStore();
      const held = accept(first.store, "m1");
      await first.reached;
      const waiting = accept(second, "m2");
      await untilWaiting(1);
      first.fail(new Error("made to fail"));
      await expect(held).rejects.toThrow("made to fail");
      expect(await waiting).toMatchObject({ type: "accepted", historyId: 1 });
    });

    test("are without a gap at every moment while four stores write at once", async () => {
      const stores = await Promise.all([1, 2, 3, 4].map(() => openStore()));
      let writing = true;
      const observed: number[] = [];
      const watching = (async () => {
        while (writing) {
          const ids = await historyIds();
          expect(ids).toEqual(ids.map((_, index) => index + 1));
          observed.push(ids.length);
        }
      })();
      const writers = stores.map(async (store, writer) => {
        for (let round = 0; round < 15; round += 1) {
          await Promise.all(Array.from({ length: 8 }, (_, n) => accept(store, `m${writer}-${round}-${n}`)));
        }
      });
      await Promise.all(writers);
      writing = false;
      await watching;
      expect(await historyIds()).toHaveLength(480);
      // An observer that saw only the beginning and the end would prove nothing.
      expect(new Set(observed.filter((count) => count > 0 && count < 480)).size).toBeGreaterThan(5);
    });
  });

  describe("one id on two brokers", () => {
    test("the second waits for the first's transaction and is answered by what it committed", async () => {
      const first = await openHeldStore();
      const second = await openStore();
      const held = accept(first.store, "m1");
      await first.reached;
      const others = [accept(second, "m1"), accept(second, "m1", "other"), accept(second, "m1", "hello", bob)];
      await untilWaiting(1);
      first.commit();
      expect(await held).toMatchObject({ type: "accepted", historyId: 1 });
      expect((await Promise.all(others)).map(({ type }) => type)).toEqual(["duplicate", "reused", "owned_by_another"]);
      expect(await world.effects()).toEqual({ ...noEffects, dedupe: 1, message: 1, history: 1, delivery: 1 });
    });

    test("neighbours in the second's batch are accepted as if it were not there", async () => {
      const first = await openHeldStore();
      const second = await openStore();
      const held = accept(first.store, "m1");
      await first.reached;
      const others = ["m0", "m1", "m2", "m3"].map((id) => accept(second, id));
      await untilWaiting(1);
      first.commit();
      expect(await held).toMatchObject({ type: "accepted", historyId: 1 });
      expect(await Promise.all(others)).toMatchObject([
        { type: "accepted", historyId: 2 },
        { type: "duplicate", historyId: 1 },
        { type: "accepted", historyId: 3 },
        { type: "accepted", historyId: 4 },
      ]);
      expect(await world.effects()).toEqual({ ...noEffects, dedupe: 4, message: 4, history: 4, delivery: 4 });
    });

    test("the second is accepted where the first's transaction fails", async () => {
      const first = await openHeldStore();
      const second = await openStore();
      const held = accept(first.store, "m1");
      await first.reached;
      const waiting = accept(second, "m1", "other");
      await untilWaiting(1);
      first.fail(new Error("made to fail"));
      await expect(held).rejects.toThrow("made to fail");
      expect(await waiting).toMatchObject({ type: "accepted", historyId: 1 });
    });

    test("the second is accepted where the first was refused", async () => {
      const first = await openHeldStore();
      const second = await openStore();
      const nowhere = world.accept(alice, send("m1", dm("f".repeat(64))), { store: first.store.accepts });
      await first.reached;
      const waiting = accept(second, "m1");
      await untilWaiting(1);
      first.commit();
      expect(await nowhere).toEqual({ type: "refused", code: "destination_not_found" });
      expect(await waiting).toMatchObject({ type: "accepted", historyId: 1 });
    });

    test("batches that claim the same ids in any order never wait in a circle", async () => {
      // With connections of their own: the server counts what a connection met when that ends.
      const others = [1, 2, 3].map(() => new PostgresHarness(url));
      const opened = await Promise.all(others.map((other) => other.open(ampleRate)));
      const ids = Array.from({ length: 40 }, (_, n) => `m${n}`);
      for (let round = 0; round < 10; round += 1) {
        const orders = [ids, [...ids].reverse(), [...ids.slice(20), ...ids.slice(0, 20)]];
        const results = await Promise.all(
          opened.flatMap(({ store }, index) => (orders[index] ?? ids).map((id) => accept(store, `${round}-${id}`))),
        );
        expect(results.filter(({ type }) => type === "accepted")).toHaveLength(40);
        expect(results.filter(({ type }) => type === "duplicate")).toHaveLength(80);
      }
      for (const other of others) await other.closePools();
      const [row] = await harness.query(
        "SELECT deadlocks::int AS n FROM pg_stat_database WHERE datname = current_database()",
      );
      expect(row?.n).toBe(0);
    });
  });

  describe("under the mesh's lock", () => {
    const mesh = uuidOf("mesh-1");

    /** Holds the lock as another broker would, lets a send come up to it, changes something, and commits. */
    async function changeWhileWaiting(id: string, change: string, values: unknown[]) {
      await harness.admin.query("BEGIN");
      await harness.admin.query("SELECT 1 FROM mesh.mesh WHERE id = $1 FOR NO KEY UPDATE", [mesh]);
      const sending = accept(world.store, id);
      await untilWaiting(1);
      await harness.admin.query(change, values);
      await harness.admin.query("COMMIT");
      return sending;
    }

    test("a send sees the fence that was committed while it waited", async () => {
      const fence = `INSERT INTO mesh.client_message_fence (mesh_id, sender_pubkey, client_message_id,
        request_fingerprint, fenced_at) VALUES ($1, $2, 'm1', '', now())`;
      expect(await changeWhileWaiting("m1", fence, [mesh, alice])).toEqual({ type: "fenced", clientMessageId: "m1" });
      expect(await world.effects()).toEqual(noEffects);
    });

    test("a send sees the revocations of its sender and of its recipient that were committed while it waited", async () => {
      const revoke = "UPDATE mesh.member SET revoked_at = now() WHERE mesh_id = $1 AND pubkey = $2";
      const recipientGone = await changeWhileWaiting("m1", revoke, [mesh, bob]);
      expect(recipientGone).toEqual({ type: "refused", code: "destination_not_found" });
      const senderGone = await changeWhileWaiting("m2", revoke, [mesh, alice]);
      expect(senderGone).toEqual({ type: "refused", code: "unauthorized" });
      expect(await world.effects()).toEqual(noEffects);
    });

    test("a fence waits for an accept that holds the lock, and finds it committed", async () => {
      const first = await openHeldStore();
      const held = accept(first.store, "m1");
      await first.reached;
      const fencing = world.fence(alice, send("m1", dm(bob)));
      await untilWaiting(1);
      first.commit();
      await held;
      expect(await fencing).toMatchObject({ fate: "committed", historyId: 1 });
    });

    test("members of other meshes are not waited for", async () => {
      const first = await openHeldStore();
      const held = accept(first.store, "m1");
      await first.reached;
      const other = await world.startOther("mesh-2");
      const [dave] = await other.threeMembers();
      expect(await other.accept(dave, send("m1", dm(dave)))).toMatchObject({ type: "accepted" });
      await other.close();
      first.commit();
      await held;
    });
  });

  describe("batches", () => {
    test("of one mesh follow one another, and a crowd shares them", async () => {
      let transactions = 0;
      const store = await openStore({
        after: () => {
          transactions += 1;
        },
      });
      // Another connection has the lock, so that whatever was begun is still there to be counted.
      await harness.admin.query("BEGIN; SELECT 1 FROM mesh.mesh FOR NO KEY UPDATE");
      const results = Promise.all(Array.from({ length: 600 }, (_, n) => accept(store, `m${n}`)));
      await untilWaiting(1);
      await harness.admin.query("COMMIT");
      expect((await results).every(({ type }) => type === "accepted")).toBe(true);
      expect(transactions).toBeLessThanOrEqual(6);
    });

    test.each([30, 600])("keep the order of arrival of %i sends, whatever the ids are", async (count) => {
      const ids = Array.from({ length: count }, (_, n) => `${(n * 7) % count}-x`);
      const results = await Promise.all(ids.map((id) => accept(world.store, id)));
      const order = results.map((result) => (result.type === "accepted" ? result.historyId : 0));
      expect(order).toEqual(ids.map((_, index) => index + 1));
    });

    test("are cut by the deliveries that their topic's last message had", async () => {
      await world.addTopic("crowded", []);
      await harness.query(`INSERT INTO mesh.member (mesh_id, pubkey, name, role, joined_at)
        SELECT 'mesh-1', 'reader-' || n, 'reader-' || n, 'member', now() FROM generate_series(1, 2000) AS n`);
      await harness.query(`INSERT INTO mesh.topic_subscription (mesh_id, topic, member_pubkey, subscribed_at)
        SELECT 'mesh-1', 'crowded', 'reader-' || n, now() FROM generate_series(1, 2000) AS n`);
      let transactions = 0;
      const store = await openStore({
        before: () => {
          transactions += 1;
        },
      });
      const toCrowd = (id: string) => world.accept(alice, send(id, topic("crowded")), { store: store.accepts });
      expect(await toCrowd("first")).toMatchObject({ type: "accepted" });
      const results = await Promise.all(Array.from({ length: 16 }, (_, n) => toCrowd(`m${n}`)));
      expect(results.every(({ type }) => type === "accepted")).toBe(true);
      expect(transactions).toBeGreaterThanOrEqual(3);
      expect(await world.effects()).toMatchObject({ delivery: 17 * 2000 });
    });

    test("are cut by the size of their bodies", async () => {
      let transactions = 0;
      const store = await openStore({
        before: () => {
          transactions += 1;
        },
      });
      const large = "x".repeat(1_000_000);
      const results = await Promise.all(Array.from({ length: 9 }, (_, n) => accept(store, `m${n}`, large)));
      expect(results.every(({ type }) => type === "accepted")).toBe(true);
      expect(transactions).toBeGreaterThanOrEqual(3);
    });
  });

  test("a send that cannot be put into the server's format leaves no claim behind", async () => {
    const store = await openStore();
    class UnwritableEnvelope implements Envelope {
      readonly version = "1";
      readonly destination = dm(bob);
      readonly replyToId = undefined;
      readonly priority = "next";
      readonly body = new Uint8Array(1);
      get canonicalMeta(): string {
        throw new Error("made to fail");
      }
    }
    const unwritable: OfferedSend = {
      meshId: "mesh-1",
      senderPubkey: alice,
      clientMessageId: "m1",
      brokerMessageId: "01890000-0000-7000-8000-000000000002",
      fingerprint: new Uint8Array(32),
      envelope: new UnwritableEnvelope(),
      mentions: [],
      acceptedAtMs: world.nowMs,
      isOutdated: () => false,
      expiresAtMs: undefined,
    };
    await expect(store.accepts.accept(unwritable)).rejects.toThrow("made to fail");
    expect(await world.effects()).toEqual(noEffects);
    expect(await accept(store, "m1")).toMatchObject({ type: "accepted", historyId: 1 });
  });

  describe("a connection that is lost at COMMIT", () => {
    test.each([
      ["before", "accepted"],
      ["after", "duplicate"],
    ] as const)("%s the server heard it leaves the outcome open, and the retry is %s", async (when, retried) => {
      const proxy = await startFaultyProxy(url);
      onTestFinished(() => proxy.stop());
      const cut = new PostgresHarness(proxy.url);
      onTestFinished(() => cut.closePools());
      const store = await openStore({}, cut);
      // The end of the statement too, or BEGIN … READ COMMITTED would be it. Its answer has the same words.
      proxy.breakAt("COMMIT\0", when, "COMMIT\0");
      await expect(accept(store, "m1")).rejects.toMatchObject({ kind: "commit_unknown" });
      expect(await accept(store, "m1")).toMatchObject({ type: retried, historyId: 1 });
      expect(await world.effects()).toMatchObject({ dedupe: 1, message: 1, history: 1, delivery: 1 });
    });
  });
});

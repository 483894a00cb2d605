// A database that was in use before: what it holds is there afterwards, in the columns where it belongs.
import { membersMigrations } from "@claudemesh/members/sqlite";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { expect, test } from "vitest";
import { ampleRate } from "../suites/world.ts";
import { createSqliteMessagesStore, messagesMigrations } from "./messages-store.ts";

const [alice, bob] = ["a".repeat(64), "b".repeat(64)];

test("messages that were sent to a queue before can be leased, and every message has its state", async () => {
  const db = openSqlite({ path: ":memory:" });
  await migrateSqlite(db, [...membersMigrations(), ...messagesMigrations().slice(0, 1)]);
  db.exec(`
    INSERT INTO mesh (id, name, created_at) VALUES ('m', 'acme', 1);
    INSERT INTO member (mesh_id, pubkey, name, role, joined_at) VALUES ('m', '${alice}', 'alice', 'owner', 1);
    INSERT INTO member (mesh_id, pubkey, name, role, joined_at) VALUES ('m', '${bob}', 'bob', 'member', 1);
    INSERT INTO queue (mesh_id, id, max_deliveries, created_by, created_at) VALUES ('m', 'jobs', 5, '${alice}', 1);
    INSERT INTO mesh_history_counter (mesh_id, last_history_id) VALUES ('m', 3);
    INSERT INTO topic_message VALUES ('m', 'id-1', 'c-1', 'news', '${alice}', '1', x'68', '', 'next', NULL, 1);
    INSERT INTO message_queue VALUES ('m', 'id-2', 'c-2', 'queue', 'jobs', '${alice}', '1', x'69', '', 'next', NULL, 2);
    INSERT INTO message_queue VALUES ('m', 'id-3', 'c-3', 'dm', '${bob}', '${alice}', '1', x'6a', '', 'next', NULL, 3);
    INSERT INTO message_history VALUES ('m', 1, 'id-1', 'c-1', 'topic', 'news', '${alice}', 1);
    INSERT INTO message_history VALUES ('m', 2, 'id-2', 'c-2', 'queue', 'jobs', '${alice}', 2);
    INSERT INTO message_history VALUES ('m', 3, 'id-3', 'c-3', 'dm', '${bob}', '${alice}', 3);
  `);
  await migrateSqlite(db, [...membersMigrations(), ...messagesMigrations()]);
  const commit = new GroupCommit(db);
  const store = createSqliteMessagesStore(db, commit, ampleRate);

  const states = await Promise.all(
    ["id-1", "id-2", "id-3"].map((brokerMessageId) =>
      store.messageState.find(
        { meshId: "m", brokerMessageId, reader: alice, readerIsOwner: false, after: "", limit: 1 },
        10,
      ),
    ),
  );
  expect(states).toMatchObject([
    { historyId: 1, clientMessageId: "c-1" },
    { historyId: 2, clientMessageId: "c-2", queued: { state: "ready", deliveries: 0 } },
    { historyId: 3, clientMessageId: "c-3" },
  ]);
  const request = {
    meshId: "m",
    queue: "jobs",
    holder: bob,
    leaseRequestId: "r",
    max: 9,
    leaseSeconds: 9,
    leaseToken: "t",
  };
  const leased = await store.queues.lease(request, 10);
  expect(leased).toMatchObject({ type: "leased", items: [{ client_message_id: "c-2", body: "i", deliveries: 1 }] });
  commit.close();
  db.close();
});

test("webhooks that had deliveries open before come to their turn", async () => {
  const db = openSqlite({ path: ":memory:" });
  await migrateSqlite(db, [...membersMigrations(), ...messagesMigrations().slice(0, 4)]);
  db.exec(`
    INSERT INTO mesh (id, name, created_at) VALUES ('m', 'acme', 1);
    INSERT INTO member (mesh_id, pubkey, name, role, joined_at) VALUES ('m', '${alice}', 'alice', 'owner', 1);
    INSERT INTO mesh_history_counter (mesh_id, last_history_id) VALUES ('m', 1);
    INSERT INTO topic_message VALUES ('m', 'id-1', 'c-1', 'news', '${alice}', '1', x'68', '', 'next', NULL, 1, 1);
    INSERT INTO message_history VALUES ('m', 1, 'id-1', 'c-1', 'topic', 'news', '${alice}', 1);
    INSERT INTO webhook (mesh_id, incarnation, id, url, secret, fingerprint, created_by, created_at, written_up_to, stepped_at)
      VALUES ('m', 'one', 'ci', 'https://receiver.example/', 's', x'00', '${alice}', 1, 1, 1);
    INSERT INTO webhook_delivery (mesh_id, incarnation, history_id, broker_message_id, state, attempts, due_at)
      VALUES ('m', 'one', 1, 'id-1', 'pending', 3, 20);
  `);
  await migrateSqlite(db, [...membersMigrations(), ...messagesMigrations()]);
  const commit = new GroupCommit(db);
  const { webhooks } = createSqliteMessagesStore(db, commit, ampleRate);
  const terms = { slots: 32, perWebhook: 8, slotsInUse: new Map(), failingSlotsInUse: 0, leaseMs: 10 };
  expect(await webhooks.claim(terms, 19)).toEqual({ claimed: [], expired: 0 });
  expect(await webhooks.claim(terms, 20)).toMatchObject({
    claimed: [{ webhook: "ci", attempt: 4, item: { history_id: 1 } }],
  });
  commit.close();
  db.close();
});

// Housekeeping over HTTP, as the holder of the admin token asks for it, and what it counts.
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import {
  callBroker,
  createTestMesh,
  joinTestMesh,
  makeTemporaryFolder,
  readAdminToken,
  startTestBroker,
} from "../../../../tests/support/broker-harness.ts";

const dayMs = 86_400_000;

async function startWithMessage(flags: Record<string, string> = {}) {
  const folder = makeTemporaryFolder();
  const broker = await startTestBroker({ folder, flags });
  const alice = await createTestMesh(broker);
  const bob = await joinTestMesh(alice, "bob");
  const sent = await alice.send("m1", bob);
  const db = new DatabaseSync(broker.storePath);
  const admin = (path: string, body?: unknown) =>
    callBroker(broker.url, "POST", `/v1/admin/${path}`, { token: readAdminToken(broker), body });
  const metrics = async () => (await fetch(`${broker.url}/metrics`)).text();
  return { broker, alice, bob, sent, db, admin, metrics };
}

test("a sweep needs the admin token, takes nothing, and says what has gone", async () => {
  const { broker, alice, bob, sent, db, admin, metrics } = await startWithMessage({ "message-retention-days": "2" });
  for (const token of ["wrong", await alice.token()]) {
    expect((await callBroker(broker.url, "POST", "/v1/admin/sweep", { token })).status).toBe(401);
    expect((await callBroker(broker.url, "POST", "/v1/admin/check", { token })).status).toBe(401);
  }
  expect(await admin("sweep", { all: true })).toMatchObject({ status: 400, body: { error: "unknown_field" } });
  expect(await admin("sweep", [])).toMatchObject({ status: 400, body: { error: "invalid_request" } });
  expect(await admin("sweep", {})).toMatchObject({ status: 200, body: { swept: {} } });

  db.prepare("UPDATE message_history SET accepted_at = ?").run(Date.now() - 3 * dayMs);
  const swept = await admin("sweep");
  expect(swept).toMatchObject({ status: 200, body: { swept: { messages: 1, expired_deliveries: 1 } } });
  expect(await alice.send("m1", bob)).toMatchObject({
    status: 200,
    body: { duplicate: true, history_available: false, broker_message_id: sent.body.broker_message_id, history_id: 1 },
  });
  expect(await metrics()).toContain('cm_broker_swept_rows_total{kind="messages"} 1');

  db.prepare("UPDATE client_message_dedupe SET expires_at = 1").run();
  expect(await admin("sweep")).toMatchObject({ body: { swept: { dedupe_rows: 1, history_rows: 1, deliveries: 1 } } });
  expect(await alice.send("m1", bob)).toMatchObject({ status: 201, body: { history_id: 2 } });
  db.close();
});

test("a daemon that waits for a message which expires goes on with the next", async () => {
  const { alice, bob, db, admin } = await startWithMessage({ "message-retention-days": "2" });
  db.prepare("UPDATE message_history SET accepted_at = ?").run(Date.now() - 3 * dayMs);
  await admin("sweep");
  await alice.send("m2", bob);
  const daemon = await bob.connect();
  expect(await daemon.next((frame) => frame.type === "message")).toMatchObject({ client_message_id: "m2" });
  // It may have been pushed before it went: the late confirmation is taken without a word.
  expect(await daemon.request("ack", { history_ids: [1, 2] })).toMatchObject({ status: 200 });
  const rows = db.prepare("SELECT history_id, outcome FROM delivery_queue ORDER BY history_id").all();
  expect(rows.map((row) => ({ ...row }))).toEqual([
    { history_id: 1, outcome: "expired" },
    { history_id: 2, outcome: "delivered" },
  ]);
  db.close();
});

test("a check names what does not fit, and counts it; ids are no labels", async () => {
  const { alice, db, admin, metrics } = await startWithMessage();
  expect(await admin("check")).toMatchObject({ status: 200, body: { ok: true, found: 0, meshes: 1 } });
  db.exec("DELETE FROM message_queue");
  const { body } = await admin("check");
  const found = (body.checks as { name: string; found: number; examples: string[] }[]).filter((each) => each.found > 0);
  expect(body).toMatchObject({ ok: false });
  expect(found.map(({ name }) => name)).toContain("dedupe_without_message");
  expect(found[0]?.examples).toEqual([`${alice.meshId}/m1`]);
  const text = await metrics();
  expect(text).toContain("cm_broker_dedupe_orphan_check_total 2");
  expect(text).toContain("cm_broker_dedupe_orphan_found 1");
  expect(text).toContain('cm_broker_orphan_found_total{check="unsettled_delivery_without_message"} 1');
  expect(text).not.toContain(alice.meshId);
  db.close();
});

test("an id that comes again with other content is counted", async () => {
  const { alice, bob, metrics } = await startWithMessage();
  expect((await alice.send("m1", bob, "other")).status).toBe(409);
  expect((await bob.send("m1", alice, "other")).status).toBe(409);
  expect(await metrics()).toContain("cm_broker_dedupe_fingerprint_mismatch_total 1");
});

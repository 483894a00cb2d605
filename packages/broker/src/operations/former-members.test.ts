// A member that was revoked where this broker was not notified, as through another broker while no signal passes: its
// connections are open, and nothing that it writes is taken.
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { startTestPair } from "../../../../tests/support/broker-harness.ts";

test("a former member whose connection is still open writes nothing", async () => {
  const { broker, alice, bob } = await startTestPair();
  for (const name of ["news", "old"]) await alice.call("POST", "/topics", { name });
  await alice.call("POST", "/queues", { id: "jobs" });
  await alice.call("POST", "/spaces", { name: "plan" });
  const peer = await bob.connect("client");
  expect((await peer.request("topic.subscribe", { name: "old" })).status).toBe(200);
  const { token_id } = (await peer.request("token.create")).body;
  const db = new DatabaseSync(broker.storePath);
  db.prepare("UPDATE member SET revoked_at = 1 WHERE pubkey = ?").run(bob.pubkey);

  const fingerprint = "ab".repeat(32);
  const destination = { kind: "topic", ref: "news" };
  const lease = { queue: "jobs", lease_request_id: "l", max: 1, lease_s: 60 };
  const settle = { queue: "jobs", lease_token: "0".repeat(36), broker_message_ids: ["0".repeat(36)] };
  const effect = { operation: "o", target: "t", artifact_hash: fingerprint, run_id: "r" };
  const request = { protocol_version: "1", logical_request_key: "k", attempt_id: "a", approval_id: "p" };
  const writes: [string, object][] = [
    ["send", { client_message_id: "m", destination, body: "x" }],
    ["fence", { client_message_id: "f", fingerprint }],
    ["topic.create", { name: "mine" }],
    ["topic.subscribe", { name: "news" }],
    ["topic.unsubscribe", { name: "old" }],
    ["queue.create", { queue: "mine" }],
    ["queue.lease", lease],
    ["queue.ack", settle],
    ["queue.nack", settle],
    ["queue.revive", { queue: "jobs", broker_message_ids: settle.broker_message_ids }],
    ["profile.set", { status: "here" }],
    ["token.create", {}],
    ["token.revoke", { token_id }],
    ["once.claim", { key: "k", claim_id: "c", inputs_fingerprint: fingerprint, lease_s: 60 }],
    ["registrar.register", { ...request, ...effect, authorization_nonce: "cmn_x" }],
    ["space.create", { name: "mine" }],
    ["space.open", { space: "plan", openId: "o" }],
    ["mesh.set", { key: "max_topics", value: 1 }],
    ["invite.create", {}],
  ];
  for (const [type, input] of writes) {
    expect(await peer.request(type, input), type).toMatchObject({ status: 401, body: { error: "unauthorized" } });
  }
  const one = (sql: string) => Object.values(db.prepare(sql).get() ?? {})[0];
  expect(one("SELECT count(*) FROM topic")).toBe(2);
  expect(one("SELECT count(*) FROM queue")).toBe(1);
  expect(one("SELECT count(*) FROM space")).toBe(1);
  expect(one(`SELECT count(*) FROM member_token WHERE pubkey = '${bob.pubkey}' AND revoked_at IS NULL`)).toBe(1);
  expect(one("SELECT group_concat(topic) FROM topic_subscription")).toBe("old");
  expect(one("SELECT count(*) FROM member_profile")).toBe(0);
  db.close();
});

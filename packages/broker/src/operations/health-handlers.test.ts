// What a mesh's health says, each trouble made for real, and the lists that show it.
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import {
  createTestMesh,
  makeTemporaryFolder,
  startTestBroker,
  startTestPair,
  type TestMember,
} from "../../../../tests/support/broker-harness.ts";
import { findUncertain } from "./health-handlers.ts";

const inputs_fingerprint = "a".repeat(64);

const sound = {
  time: expect.any(Number),
  store: "ok",
  limiter: "ok",
  brokers: [],
  parked: { messages: 0, queues: [] },
  uncertain: { keys: 0, first: [] },
  verify_failed: { keys: 0, first: [] },
  nightly_check: null,
};

async function parkOne(member: TestMember, queue: string) {
  await member.call("POST", "/queues", { id: queue, max_deliveries: 1 });
  const destination = { kind: "queue", ref: queue };
  await member.call("POST", "/messages", { client_message_id: `job-${queue}`, destination, body: "work" });
  const leased = await member.call("POST", `/queues/${queue}/lease`, { lease_request_id: "r", max: 1, lease_s: 60 });
  const { items, lease_token } = leased.body as { items: { broker_message_id: string }[]; lease_token: string };
  const broker_message_ids = items.map((item) => item.broker_message_id);
  await member.call("POST", `/queues/${queue}/nack`, { lease_token, broker_message_ids });
}

test("a sound mesh has nothing to look at, for any member and over either transport", async () => {
  const { bob } = await startTestPair();
  expect(await bob.call("GET", "/health")).toMatchObject({ status: 200, body: sound });
  const peer = await bob.connect("client");
  expect((await peer.request("mesh.health")).body).toEqual(sound);
});

test("parked jobs and uncertain keys are counted and named, and their lists show them", async () => {
  let wallMs = Date.now();
  const time = { wallMs: () => wallMs, monotonicMs: () => wallMs };
  const broker = await startTestBroker({ time, flags: { "public-url": "https://mesh.example.org" } });
  const alice = await createTestMesh(broker);
  await parkOne(alice, "jobs");
  await parkOne(alice, "more");
  const claim = { claim_id: "c1", inputs_fingerprint, lease_s: 60 };
  await alice.call("POST", "/once/done/claim", claim);
  await alice.call("POST", "/once/done/record", { epoch: 1, result: 1 });
  await alice.call("POST", "/once/left/claim", claim);
  wallMs += 61_000;
  await alice.call("POST", "/once/runs/claim", claim);
  const { body } = await alice.call("GET", "/health");
  expect(body).toEqual({
    ...sound,
    brokers: ["https://mesh.example.org"],
    parked: { messages: 2, queues: ["jobs", "more"] },
    uncertain: { keys: 1, first: ["left"] },
  });
  const queues = await alice.call("GET", "/queues?limit=1");
  expect(queues.body).toMatchObject({ items: [{ id: "jobs", depth: 0, leased: 0, parked: 1 }], next_cursor: "jobs" });
  const keys = async (query: string) => {
    const page = (await alice.call("GET", `/once${query}`)).body;
    return [(page.items as { key: string }[]).map(({ key }) => key), page.next_cursor];
  };
  expect(await keys("")).toEqual([["done", "left", "runs"], null]);
  expect(await keys("?state=uncertain")).toEqual([["left"], null]);
  expect(await keys("?state=running")).toEqual([["runs"], null]);
  expect(await keys("?state=done&limit=1")).toEqual([["done"], "done"]);
  expect(await keys("?state=done&limit=1&after=done")).toEqual([[], "left"]);
  expect((await alice.call("GET", "/once?state=lost")).status).toBe(400);
});

test("an uncertain key is found behind as many running ones as a page holds", async () => {
  const epoch = (leaseUntilMs: number) => ({ leaseUntilMs, settlement: undefined }) as never;
  const running = Array.from({ length: 1_500 }, (_, n) => ({
    key: `a${String(n).padStart(4, "0")}`,
    newest: epoch(2),
  }));
  const keys = [...running, { key: "z", newest: epoch(0) }];
  const list = async ({ after, limit }: { readonly after: string; readonly limit: number }) =>
    keys.filter(({ key }) => key > after).slice(0, limit);
  expect(await findUncertain({ once: { list }, nowMs: () => 1 }, "m")).toEqual(["z"]);
});

test("topics are listed with their counts where these are asked for", async () => {
  const { alice, bob } = await startTestPair();
  await alice.call("POST", "/topics", { name: "builds" });
  await bob.call("PUT", "/topics/builds/subscription");
  const plain = { name: "builds", post_policy: "members", subscribed: false };
  expect((await alice.call("GET", "/topics")).body.items).toEqual([plain]);
  expect((await alice.call("GET", "/topics?counts=true")).body.items).toEqual([
    { ...plain, subscribers: 1, messages: 0, last_message_at: null },
  ]);
  expect(await alice.call("GET", "/topics?counts=yes")).toMatchObject({ status: 400, body: { field: "counts" } });
});

test("what the night's look has found is kept, over restarts too", async () => {
  const folder = makeTemporaryFolder();
  const first = await startTestBroker({ folder });
  const alice = await createTestMesh(first);
  await first.stop();
  const db = new DatabaseSync(`${folder}/broker.db`);
  db.prepare(
    `INSERT INTO mesh_housekeeping (mesh_id, removed_up_to, checked_at, check_ended_at, check_found, check_rules)
     VALUES (?, 0, 5, 5, 2, 'dedupe_without_message history_gap')`,
  ).run(alice.meshId);
  db.close();
  const second = await startTestBroker({ folder });
  alice.url = second.url;
  expect((await alice.call("GET", "/health")).body.nightly_check).toEqual({
    ended_at: 5,
    found: 2,
    rules: ["dedupe_without_message", "history_gap"],
  });
});

// How many things a mesh may have: the count as it is remembered, and every way of creating something against a real broker.
import { expect, test } from "vitest";
import {
  createTestMesh,
  joinTestMesh,
  startTestBroker,
  startTestPair,
  type TestMember,
} from "../../../../tests/support/broker-harness.ts";
import { MeshCaps } from "./mesh-caps.ts";

const creations: Record<string, (owner: TestMember, name: string) => ReturnType<TestMember["call"]>> = {
  topics: (owner, name) => owner.call("POST", "/topics", { name }),
  queues: (owner, id) => owner.call("POST", "/queues", { id }),
  spaces: (owner, name) => owner.call("POST", "/spaces", { name }),
  sessions: (owner, openId) => owner.call("POST", "/spaces/plan/sessions", { openId }),
  // A token makes no tokens, so that the owner's key asks.
  tokens: async (owner) => ({
    ...(await (await owner.connect("client")).request("token.create")),
    headers: new Headers(),
  }),
  invites: (owner) => owner.call("POST", "/invites", {}),
  webhooks: (owner, id) => owner.call("POST", "/webhooks", { id, url: "https://example.org/hook" }),
};

test.for(Object.keys(creations))("beyond max_%s nothing is created, and the answer says so", async (what) => {
  const { alice } = await startTestPair();
  const create = creations[what] ?? expect.fail();
  await alice.call("POST", "/spaces", { name: "plan" });
  const key = `max_${what}`;
  const had = what === "tokens" ? 1 : what === "spaces" ? 1 : 0;
  await alice.set(key, had + 2);
  for (const name of ["a", "b"]) expect([200, 201], name).toContain((await create(alice, name)).status);
  expect(await create(alice, "c")).toMatchObject({
    status: 409,
    body: { error: "mesh_limit_reached", retryable: false, setting: key, limit: had + 2, count: had + 2 },
  });
  await alice.set(key, had + 3);
  expect([200, 201]).toContain((await create(alice, "c")).status);
});

test("however many are created at once, no more are than there is room for", async () => {
  const { alice } = await startTestPair();
  await alice.set("max_topics", 5);
  const peer = await alice.connect("client");
  const asked = Array.from({ length: 40 }, (_, n) => peer.request("topic.create", { name: `t${n}` }));
  const statuses = (await Promise.all(asked)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 201)).toHaveLength(5);
  expect(statuses.filter((status) => status === 409)).toHaveLength(35);
});

test("what exists is answered as ever where the mesh is full", async () => {
  const { alice } = await startTestPair();
  const again = ["topics", "queues", "spaces", "sessions", "webhooks"];
  await alice.call("POST", "/spaces", { name: "plan" });
  for (const what of again) await creations[what]?.(alice, "a");
  for (const what of again) await alice.set(`max_${what}`, 0);
  for (const what of again) expect((await creations[what]?.(alice, "a"))?.status, what).toBe(200);
});

test("what was removed makes room at once", async () => {
  const { alice } = await startTestPair();
  await alice.set("max_topics", 1);
  expect((await alice.call("POST", "/topics", { name: "a" })).status).toBe(201);
  expect((await alice.call("POST", "/topics", { name: "b" })).status).toBe(409);
  await alice.call("DELETE", "/topics/a");
  expect((await alice.call("POST", "/topics", { name: "b" })).status).toBe(201);
});

test("each new thing spends a unit of the mesh's budget, and the same again none", async () => {
  const broker = await startTestBroker({ flags: { "rate-limit": "7/86400s" } });
  const alice = await createTestMesh(broker);
  for (let again = 0; again < 2; again++) {
    // Token, topic, queue, space and webhook; an invite is new each time.
    for (const what of ["topics", "queues", "spaces", "webhooks"]) await creations[what]?.(alice, "a");
    expect((await alice.call("POST", "/invites", {})).status).toBe(201);
  }
  for (const what of ["topics", "queues", "spaces", "webhooks", "invites", "tokens"]) {
    expect(await creations[what]?.(alice, "b"), what).toMatchObject({ status: 429, body: { error: "rate_limited" } });
  }
});

test("settings are read by every member, and set by owners alone, over both transports", async () => {
  const { alice, bob } = await startTestPair({ flags: { "mesh-limits": "max_topics:20" } });
  const carol = await joinTestMesh(alice, "carol");
  expect(await bob.call("PUT", "/settings", { key: "max_topics", value: 3 })).toMatchObject({ status: 403 });
  const peer = await carol.connect("client");
  expect(await peer.request("mesh.set", { key: "max_topics", value: 3 })).toMatchObject({ status: 403 });
  expect(await alice.call("PUT", "/settings", { key: "max_topics", value: 21 })).toMatchObject({
    status: 400,
    body: { error: "invalid_request", field: "value", limit: 20 },
  });
  expect(await alice.call("PUT", "/settings", { key: "max_topics", value: 3, more: 1 })).toMatchObject({
    status: 400,
    body: { error: "unknown_field" },
  });
  const items = (await bob.call("GET", "/settings")).body.items as { key: string }[];
  expect(items.find(({ key }) => key === "max_topics")).toMatchObject({ value: 20, default: 20, maximum: 20 });
});

test("a count with room to spare is believed for a while, a full one is made sure of, and neither is asked at every call", async () => {
  let nowMs = 1_000_000;
  let things = 0;
  const counted: number[] = [];
  const store = { count: async () => counted.push(things) && things };
  const caps = new MeshCaps({
    members: store,
    messages: { topics: store, queues: store },
    spaces: store,
    settings: { of: async () => ({ max_sessions: 1_000 }) as never },
    nowMs: () => nowMs,
  });
  const ask = async () => (await caps.refusalOf("m", "sessions"))?.code;
  for (let n = 0; n < 400; n++) expect(await ask()).toBeUndefined();
  expect(counted).toEqual([0]);
  things = 1_000;
  nowMs += 30_000;
  expect(await ask()).toBe("mesh_limit_reached");
  for (let n = 0; n < 50; n++) expect(await ask()).toBe("mesh_limit_reached");
  expect(counted).toEqual([0, 1_000]);
  things = 999;
  nowMs += 10;
  expect(await ask()).toBeUndefined();
  expect(counted).toEqual([0, 1_000, 999]);
});

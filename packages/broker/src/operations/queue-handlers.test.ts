// Queues over HTTP and WebSocket, against a real broker: routes, statuses and bodies. What leases promise is tested on
// the stores.
import { describe, expect, test } from "vitest";
import { startTestPair, type TestMember } from "../../../../tests/support/broker-harness.ts";

async function sendToQueue(sender: TestMember, ...clientIds: string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const id of clientIds) {
    const destination = { kind: "queue", ref: "jobs" };
    const { body } = await sender.call("POST", "/messages", { client_message_id: id, destination, body: id });
    ids.push(String(body.broker_message_id));
  }
  return ids;
}

const lease = (member: TestMember, lease_request_id: string, max = 10, lease_s = 60) =>
  member.call("POST", "/queues/jobs/lease", { lease_request_id, max, lease_s });

describe("creating a queue", () => {
  test("is 201, 200 the same again, and 409 with other deliveries; five is the default", async () => {
    const { alice, bob } = await startTestPair();
    const created = { id: "jobs", max_deliveries: 5 };
    expect(await alice.call("POST", "/queues", { id: "jobs" })).toMatchObject({ status: 201, body: created });
    expect(await bob.call("POST", "/queues", created)).toMatchObject({ status: 200, body: created });
    const other = await alice.call("POST", "/queues", { id: "jobs", max_deliveries: 4 });
    expect(other).toMatchObject({ status: 409, body: { error: "exists_with_other_content", name: "jobs" } });
  });

  test("names its field as the caller does: id in a body, queue in a frame", async () => {
    const { alice } = await startTestPair();
    const peer = await alice.connect("client");
    expect((await peer.request("queue.create", { queue: "jobs" })).status).toBe(201);
    expect(await peer.request("queue.create", {})).toMatchObject({ status: 400, body: { field: "queue" } });
    expect(await alice.call("POST", "/queues", { queue: "jobs" })).toMatchObject({
      status: 400,
      body: { error: "unknown_field", field: "queue" },
    });
    expect(await alice.call("POST", "/queues", {})).toMatchObject({
      status: 400,
      body: { error: "invalid_request", field: "id", message: 'The field "id" is missing.' },
    });
    expect(await alice.call("POST", "/queues", { id: 1 })).toMatchObject({ status: 400, body: { field: "id" } });
    expect(await alice.call("POST", "/queues", { id: "no spaces" })).toMatchObject({
      status: 400,
      body: { error: "invalid_name", field: "id" },
    });
  });

  test.each([0, 1_001, 1.5, "5"])("refuses %j deliveries", async (max_deliveries) => {
    const { alice } = await startTestPair();
    const refused = await alice.call("POST", "/queues", { id: "jobs", max_deliveries });
    expect(refused).toMatchObject({ status: 400, body: { error: "invalid_request", field: "max_deliveries" } });
  });
});

describe("a consumer", () => {
  test("leases, settles, and gets the same answers again over either transport", async () => {
    const { alice, bob } = await startTestPair();
    await alice.call("POST", "/queues", { id: "jobs" });
    const [m1, m2] = await sendToQueue(alice, "m1", "m2");
    const leased = await lease(bob, "r1");
    expect(leased).toMatchObject({
      status: 200,
      body: {
        items: [
          { broker_message_id: m1, body: "m1", destination: { kind: "queue", ref: "jobs" }, deliveries: 1 },
          { broker_message_id: m2 },
        ],
        lease_token: expect.stringMatching(/^[0-9a-f-]{36}$/),
        expires_at: expect.any(Number),
      },
    });
    const { lease_token } = leased.body;
    const ack = { lease_token, broker_message_ids: [m1] };
    const acked = { status: 200, body: { items: [{ broker_message_id: m1, settlement: "acked" }] } };
    expect(await bob.call("POST", "/queues/jobs/ack", ack)).toMatchObject(acked);
    const peer = await bob.connect("client");
    expect(await peer.request("queue.ack", { queue: "jobs", ...ack })).toEqual(acked);
    expect(await peer.request("queue.nack", { queue: "jobs", lease_token, broker_message_ids: [m2] })).toEqual({
      status: 200,
      body: { items: [{ broker_message_id: m2, settlement: "nacked" }] },
    });
    expect(await lease(bob, "r1")).toMatchObject({ status: 200, body: { items: [], lease_token } });
    expect(await lease(alice, "r1")).toMatchObject({ body: { items: [{ broker_message_id: m2, deliveries: 2 }] } });
  });

  test("of an empty queue gets nothing to hold; of no queue, a 404", async () => {
    const { alice } = await startTestPair();
    expect(await lease(alice, "r1")).toMatchObject({ status: 404, body: { error: "not_found" } });
    await alice.call("POST", "/queues", { id: "jobs" });
    expect(await lease(alice, "r1")).toMatchObject({
      status: 200,
      body: { items: [], lease_token: null, expires_at: null },
    });
  });

  test("that asks under a used id with other terms, or settles what it does not hold, is refused", async () => {
    const { alice, bob } = await startTestPair();
    await alice.call("POST", "/queues", { id: "jobs" });
    const [m1] = await sendToQueue(alice, "m1");
    const { lease_token } = (await lease(bob, "r1", 1)).body;
    expect(await lease(bob, "r1", 2)).toMatchObject({
      status: 409,
      body: { error: "exists_with_other_content", lease_request_id: "r1" },
    });
    const refused = await alice.call("POST", "/queues/jobs/ack", { lease_token, broker_message_ids: [m1] });
    expect(refused).toMatchObject({ status: 409, body: { error: "lease_lost", retryable: false, lost: [m1] } });
  });

  test.each([
    [{ max: 1, lease_s: 1 }, "lease_request_id"],
    [{ lease_request_id: "r", lease_s: 1 }, "max"],
    [{ lease_request_id: "r", max: 1 }, "lease_s"],
    [{ lease_request_id: "r 1", max: 1, lease_s: 1 }, "lease_request_id"],
    [{ lease_request_id: "", max: 1, lease_s: 1 }, "lease_request_id"],
    [{ lease_request_id: "r", max: 0, lease_s: 1 }, "max"],
    [{ lease_request_id: "r", max: 1, lease_s: 0 }, "lease_s"],
    [{ lease_request_id: "r", max: 1, lease_s: 43_201 }, "lease_s"],
  ])("cannot lease with %j", async (input, field) => {
    const { alice } = await startTestPair();
    const refused = await alice.call("POST", "/queues/jobs/lease", input);
    expect(refused).toMatchObject({ status: 400, body: { error: "invalid_request", field } });
  });

  test("whose messages were parked lists them and revives them", async () => {
    const { alice, bob } = await startTestPair();
    await alice.call("POST", "/queues", { id: "jobs", max_deliveries: 1 });
    const [m1, m2] = await sendToQueue(alice, "m1", "m2");
    const { lease_token } = (await lease(bob, "r1")).body;
    await bob.call("POST", "/queues/jobs/nack", { lease_token, broker_message_ids: [m1, m2] });
    const parked = await alice.call("GET", "/queues/jobs/parked?limit=1");
    expect(parked).toMatchObject({
      status: 200,
      body: { items: [{ broker_message_id: m1, deliveries: 1, parked_at: expect.any(Number) }], next_after: 1 },
    });
    expect(await alice.call("GET", "/queues/jobs/parked?after=1")).toMatchObject({
      body: { items: [{ broker_message_id: m2 }], next_after: null },
    });
    const unknown = "0".repeat(36);
    expect(await bob.call("POST", "/queues/jobs/revive", { broker_message_ids: [m1, unknown] })).toMatchObject({
      status: 404,
      body: { error: "not_found", broker_message_ids: [unknown] },
    });
    const revived = await bob.call("POST", "/queues/jobs/revive", { broker_message_ids: [m1, m2] });
    expect(revived).toMatchObject({ status: 200, body: { revived: 2 } });
    expect(await lease(bob, "r2")).toMatchObject({ body: { items: [{ deliveries: 1 }, { deliveries: 1 }] } });
  });
});

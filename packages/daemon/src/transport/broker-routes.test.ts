import { describe, expect, it } from "vitest";
import { startTestDaemon, type TestDaemon } from "../testing/test-daemon.ts";

const uuid = "01890000-0000-7000-8000-000000000001";
const lease = { lease_request_id: "r-1", max: 5, lease_s: 30 };
const settlement = { lease_token: uuid, broker_message_ids: [uuid] };

/** Each route, with what the broker is asked for it. */
const passed = [
  ["GET", "/v1/topic/list", undefined, "topic.list", { limit: 100 }],
  ["GET", "/v1/topic/list?limit=2&cursor=builds", undefined, "topic.list", { limit: 2, after: "builds" }],
  ["POST", "/v1/topic/subscribe", { topic: "builds" }, "topic.subscribe", { name: "builds" }],
  ["POST", "/v1/topic/unsubscribe", { topic: "#builds" }, "topic.unsubscribe", { name: "builds" }],
  ["GET", "/v1/peers?limit=3", undefined, "peers.list", { limit: 3 }],
  ["POST", "/v1/profile", { status: "busy", visible: true }, "profile.set", { status: "busy", visible: true }],
  ["POST", "/v1/queue/jobs/lease", lease, "queue.lease", { queue: "jobs", ...lease }],
  ["POST", "/v1/queue/jobs/ack", settlement, "queue.ack", { queue: "jobs", ...settlement }],
  ["POST", "/v1/queue/jobs/nack", settlement, "queue.nack", { queue: "jobs", ...settlement }],
  ["GET", "/v1/queue/jobs/parked?after=7", undefined, "queue.parked", { queue: "jobs", limit: 100, after: 7 }],
] as const;

async function startOnline(): Promise<TestDaemon> {
  const daemon = await startTestDaemon();
  daemon.link.goOnline();
  return daemon;
}

describe("what the broker answers", () => {
  it("is asked with the member's own words and passed on as it came", async () => {
    const daemon = await startOnline();
    for (const [method, path, json, operation, input] of passed) {
      const answer = daemon.call(method, path, json === undefined ? {} : { json });
      const request = await daemon.link.requested(operation);
      expect(request.input, path).toEqual(input);
      request.answer(201, { items: [], some: "thing" });
      expect(await answer).toMatchObject({ status: 201, body: { items: [], some: "thing" } });
    }
  });

  it("is passed on with status and body also where it is a refusal", async () => {
    const daemon = await startOnline();
    const refusals = [
      [404, { error: "not_found", message: "no such topic", retryable: false }],
      [409, { error: "lease_lost", message: "too late", retryable: false, lost: [uuid] }],
      [503, { error: "storage_unavailable", message: "away", retryable: true }],
    ] as const;
    for (const [status, body] of refusals) {
      const answer = daemon.call("POST", "/v1/queue/jobs/ack", { json: settlement });
      (await daemon.link.requested("queue.ack")).answer(status, body);
      expect(await answer).toMatchObject({ status, body });
    }
    const limited = daemon.call("GET", "/v1/topic/list");
    const body = { error: "rate_limited", message: "wait", retryable: true, retry_after_s: 7 };
    (await daemon.link.requested("topic.list")).answer(429, body);
    expect(await limited).toMatchObject({ status: 429, body, headers: { "retry-after": "7" } });
  });

  it("is 503 broker_unreachable where it does not come, and says whether the broker may have acted", async () => {
    const daemon = await startOnline();
    const ends = [
      [{ type: "not_sent" }, false],
      [{ type: "timed_out" }, true],
      [{ type: "connection_lost" }, true],
      [{ type: "answered", status: 200, body: "no object" }, true],
      [{ type: "answered", status: 502, body: {} }, true],
    ] as const;
    for (const [end, sent] of ends) {
      const answer = daemon.call("POST", "/v1/topic/subscribe", { json: { topic: "builds" } });
      (await daemon.link.requested("topic.subscribe")).end(end);
      expect(await answer).toMatchObject({
        status: 503,
        body: { error: "broker_unreachable", retryable: true, sent },
      });
    }
  });

  it("is not asked for what is no topic, no queue or not understood", async () => {
    const daemon = await startOnline();
    const { queue: _, ...noQueue } = { queue: "x", ...lease };
    for (const [method, path, json, error] of [
      ["POST", "/v1/topic/subscribe", { topic: "no spaces" }, "invalid_name"],
      ["POST", "/v1/topic/subscribe", { topic: "builds", name: "builds" }, "unknown_field"],
      ["POST", "/v1/topic/subscribe", {}, "invalid_request"],
      ["GET", "/v1/topic/list?limit=0", undefined, "invalid_request"],
      ["POST", "/v1/queue/no%20spaces/lease", noQueue, "invalid_name"],
      ["POST", "/v1/queue/jobs/lease", { ...lease, queue: "other" }, "unknown_field"],
      ["POST", "/v1/queue/jobs/lease", { ...lease, max: 0 }, "invalid_request"],
      ["POST", "/v1/queue/jobs/ack", { lease_token: uuid }, "invalid_request"],
      ["POST", "/v1/profile", { colour: "red" }, "unknown_field"],
      ["POST", "/v1/profile", { visible: "yes" }, "invalid_request"],
      ["GET", "/v1/queue/jobs/parked?after=x", undefined, "invalid_request"],
    ] as const) {
      const answer = await daemon.call(method, path, json === undefined ? {} : { json });
      expect(answer.body, `${path} ${JSON.stringify(json)}`).toMatchObject({ error });
    }
    expect(daemon.link.requests.filter(({ operation }) => /^(topic|queue|profile)/.test(operation))).toEqual([]);
  });
});

describe("POST /v1/topic/post", () => {
  it("is a send to the topic: one id, one table, whichever of the two routes is asked", async () => {
    const daemon = await startTestDaemon();
    const post = (json: object, headers = {}) => daemon.call("POST", "/v1/topic/post", { json, headers });
    const first = await post({ topic: "general", message: "m", client_message_id: "p-1", meta: { a: 1 } });
    expect(first).toMatchObject({ status: 202, body: { status: "queued", duplicate: false } });
    for (const topic of ["general", "#general", "topic:general"]) {
      const again = await post({ topic, message: "m", meta: { a: 1 } }, { "idempotency-key": "p-1" });
      expect(again).toMatchObject({ status: 202, body: { duplicate: true, outbox_id: first.body.outbox_id } });
    }
    const sent = await daemon.send({ to: "#general", message: "m", client_message_id: "p-1", meta: { a: 1 } });
    expect(sent).toMatchObject({ status: 202, body: { duplicate: true } });
    const other = await post({ topic: "other", message: "m", client_message_id: "p-1", meta: { a: 1 } });
    expect(other).toMatchObject({ status: 409, body: { conflict: "outbox_pending_fingerprint_mismatch" } });
    expect((await post({ topic: "@bob", message: "m" })).body.error).toBe("invalid_name");
    expect((await post({ topic: "general", to: "#general", message: "m" })).body.error).toBe("unknown_field");
    expect((await post({ message: "m" })).body.error).toBe("invalid_request");
    expect(daemon.rowCount()).toBe(1);
  });
});

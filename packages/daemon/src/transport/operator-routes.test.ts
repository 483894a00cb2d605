// The operator's routes over real HTTP: statuses, bodies and refusals. What the rules are is tested beside the services.
import { describe, expect, it } from "vitest";
import { settle } from "../testing/scripted-link.ts";
import { startTestDaemon, type TestDaemon } from "../testing/test-daemon.ts";

const brokerId = "01890000-0000-7000-8000-000000000001";
const sender = "ab".repeat(32);

const post = (daemon: TestDaemon, path: string, json: unknown) => daemon.call("POST", path, { json });
const requeue = (daemon: TestDaemon, json: unknown) => post(daemon, "/v1/outbox/requeue", json);

async function withRow(columns = "") {
  const daemon = await startTestDaemon();
  const { body } = await daemon.send({ to: "#general", message: "hello", client_message_id: "order-1" });
  if (columns !== "") daemon.outboxDb().sql(`UPDATE outbox SET ${columns} WHERE client_message_id = 'order-1'`).run();
  return { daemon, outboxId: body.outbox_id as string };
}

async function withMessage() {
  const daemon = await startTestDaemon();
  daemon.link.automatic.set("ack", () => ({ type: "answered", status: 200, body: {} }));
  daemon.link.options?.onPush({
    type: "message",
    history_id: 1,
    broker_message_id: brokerId,
    client_message_id: "from-bob",
    destination: { kind: "topic", ref: "general" },
    sender_pubkey: sender,
    envelope_version: "1",
    body: "hello",
    meta: null,
    priority: "next",
    reply_to_id: null,
    accepted_at: 1_700_000_000_000,
  });
  await settle();
  const { body } = await daemon.call("GET", "/v1/inbox");
  return { daemon, inboxId: body.items[0].id as string };
}

describe("POST /v1/outbox/requeue", () => {
  it("answers 200 with both rows, and the old id is retired for ever", async () => {
    const { daemon, outboxId } = await withRow();
    const { status, body } = await requeue(daemon, { id: "order-1" });
    expect(status).toBe(200);
    expect(body).toEqual({
      old: { id: outboxId, client_message_id: "order-1", status: "aborted" },
      new: { outbox_id: expect.any(String), client_message_id: expect.stringMatching(/^[0-9A-Z]{26}$/) },
    });
    const again = await daemon.send({ to: "#general", message: "hello", client_message_id: "order-1" });
    expect([again.status, again.body.conflict]).toEqual([409, "outbox_aborted_fingerprint_match"]);
    const asNew = { to: "#general", message: "hello", client_message_id: body.new.client_message_id };
    expect((await daemon.send(asNew)).body).toMatchObject({ status: "queued", duplicate: true });
  });

  it("shows the override on both rows of the chain", async () => {
    const { daemon, outboxId } = await withRow("status = 'dead', attempts = 1, unanswered = 1");
    const refused = await requeue(daemon, { id: outboxId });
    expect(refused.status).toBe(409);
    expect(refused.body).toMatchObject({ error: "fate_unknown", retryable: false, reason: "broker_not_reachable" });
    expect((await requeue(daemon, { id: outboxId, accept_duplicate: true })).status).toBe(200);
    const { body } = await daemon.call("GET", `/v1/outbox/${outboxId}`);
    expect(body.row).toMatchObject({ status: "aborted", aborted_by: "operator", fate: "unknown" });
    expect(body.chain.map((row: { accept_duplicate: boolean }) => row.accept_duplicate)).toEqual([true, true]);
  });

  it.each([
    ["destination_not_found", 404, "claudemesh topic create general"],
    ["not_subscribed", 403, "claudemesh topic subscribe general"],
  ])(
    "is refused with %s where the new row would meet the same wall, and changes nothing",
    async (refusal, status, next) => {
      const { daemon } = await withRow("status = 'dead', attempts = 1");
      daemon.link.automatic.set("destination.state", ({ kind, ref }) => ({
        type: "answered",
        status: 200,
        body: { kind, ref, refusal, has_recipients: false },
      }));
      daemon.link.goOnline();
      const answer = await requeue(daemon, { id: "order-1", new_client_id: "order-2" });
      expect([answer.status, answer.body.error]).toEqual([status, refusal]);
      expect(answer.body.message).toContain(next);
      expect((await daemon.call("GET", "/v1/outbox/order-1")).body.row.status).toBe("dead");
      expect((await daemon.call("GET", "/v1/outbox/order-2")).status).toBe(404);
    },
  );

  it("fences over the link, drains the new row, and never sends the old one again", async () => {
    const { daemon } = await withRow("attempts = 1, unanswered = 1, next_attempt_at = 9000000000000");
    daemon.link.goOnline();
    const running = requeue(daemon, { id: "order-1", new_client_id: "order-2" });
    (await daemon.link.requested("fence")).answer(200, { fate: "fenced" });
    expect((await running).status).toBe(200);
    expect((await daemon.link.requested("send")).input).toMatchObject({ client_message_id: "order-2", body: "hello" });
    expect(daemon.link.ofKind("send")).toHaveLength(1);
  });

  it("refuses what it does not understand with 400 and changes nothing", async () => {
    const { daemon } = await withRow();
    const cases: [object, string][] = [
      [{}, "invalid_request"],
      [{ id: "" }, "invalid_request"],
      [{ id: 1 }, "invalid_request"],
      [{ id: "order-1", force: true }, "unknown_field"],
      [{ id: "order-1", accept_duplicate: "yes" }, "invalid_request"],
      [{ id: "order-1", new_client_id: "" }, "invalid_client_message_id"],
      [{ id: "order-1", new_client_id: "ü" }, "invalid_client_message_id"],
      [{ id: "order-1", patch_payload: {} }, "invalid_request"],
      [{ id: "order-1", patch_payload: { to: "#other" } }, "unknown_field"],
      [{ id: "order-1", patch_payload: { message: "a", message_base64: "YQ==" } }, "invalid_request"],
      [{ id: "order-1", patch_payload: { priority: "soon" } }, "invalid_request"],
      [{ id: "order-1", patch_payload: { meta: [] } }, "invalid_request"],
    ];
    for (const [json, error] of cases) {
      const { status, body } = await requeue(daemon, json);
      expect([status, body.error], JSON.stringify(json)).toEqual([400, error]);
    }
    expect((await daemon.call("GET", "/v1/outbox/order-1")).body.row.status).toBe("pending");
    expect(daemon.rowCount()).toBe(1);
  });

  it("answers 404 for a row that is not there", async () => {
    const { daemon } = await withRow();
    const { status, body } = await requeue(daemon, { id: "missing" });
    expect([status, body.error]).toEqual([404, "not_found"]);
  });
});

describe("POST /v1/outbox/prune", () => {
  it("answers with the number of tombstones made", async () => {
    const { daemon } = await withRow(
      `status = 'done', delivered_at = 5, broker_message_id = '${brokerId}', history_id = 1`,
    );
    const pruned = await post(daemon, "/v1/outbox/prune", { older_than_days: 0 });
    expect([pruned.status, pruned.body]).toEqual([200, { tombstones_made: 1, more: false }]);
    const again = await post(daemon, "/v1/outbox/prune", { older_than_days: 0 });
    expect(again.body).toEqual({ tombstones_made: 0, more: false });
    const retry = await daemon.send({ to: "#general", message: "hello", client_message_id: "order-1" });
    expect([retry.status, retry.body]).toMatchObject([200, { status: "done", broker_message_id: brokerId }]);
  });

  it("refuses what is no number of days", async () => {
    const daemon = await startTestDaemon();
    const days = [-1, 1.5, "1", null, 36_501].map((older_than_days) => ({ older_than_days }));
    for (const json of [{}, { older_than_days: 1, all: true }, ...days]) {
      expect((await post(daemon, "/v1/outbox/prune", json)).status, JSON.stringify(json)).toBe(400);
    }
  });
});

describe("GET /v1/messages/:id", () => {
  it("tells the facts of a send, and 404 for what is unknown", async () => {
    const { daemon, outboxId } = await withRow();
    const { status, body } = await daemon.call("GET", `/v1/messages/${outboxId}`);
    expect([status, body]).toMatchObject([200, { client_message_id: "order-1", state: "queued", fate: "unsent" }]);
    const sender_name = "me";
    expect(body).toMatchObject({ sender_pubkey: daemon.keys.ed25519.public_key, sender_name });
    expect((await daemon.call("GET", "/v1/messages/missing")).status).toBe(404);
    expect((await daemon.call("GET", `/v1/messages/${"x".repeat(129)}`)).status).toBe(400);
  });

  it("finds an id whatever characters it has", async () => {
    const daemon = await startTestDaemon();
    const client_message_id = "a/b?c=%#d";
    await daemon.send({ to: "#general", message: "hello", client_message_id });
    const { body } = await daemon.call("GET", `/v1/messages/${encodeURIComponent(client_message_id)}`);
    expect(body).toMatchObject({ client_message_id, state: "queued" });
  });
});

describe("POST /v1/inbox/:id/read", () => {
  it("marks a message once, by inbox or client id, and shows it everywhere", async () => {
    const { daemon, inboxId } = await withMessage();
    const first = await daemon.call("POST", `/v1/inbox/${inboxId}/read`);
    expect([first.status, first.body]).toEqual([
      200,
      { id: inboxId, client_message_id: "from-bob", read_at: expect.any(Number) },
    ]);
    for (const id of [inboxId, "from-bob"]) {
      const again = await post(daemon, `/v1/inbox/${id}/read`, {});
      expect([again.status, again.body]).toEqual([200, first.body]);
    }
    const { items } = (await daemon.call("GET", "/v1/inbox")).body;
    expect(items[0].read_at).toBe(first.body.read_at);
    const facts = (await daemon.call("GET", `/v1/messages/${brokerId}`)).body;
    expect(facts).toMatchObject({ state: "read", inbox_id: inboxId });
  });

  it("answers 404 for a message that is not there, and 400 for a body that means something", async () => {
    const { daemon, inboxId } = await withMessage();
    expect((await daemon.call("POST", "/v1/inbox/missing/read")).body.error).toBe("not_found");
    expect((await post(daemon, `/v1/inbox/${inboxId}/read`, { read: false })).body.error).toBe("unknown_field");
  });
});

import { generateMemberKeys } from "@claudemesh/client/keys";
import { describe, expect, it } from "vitest";
import { settle } from "../testing/scripted-link.ts";
import { startTestDaemon, type TestDaemon } from "../testing/test-daemon.ts";

const prefix = /^[0-9a-f]{16}$/;
const brokerId = "01890000-0000-7000-8000-00000000000b";
const same = { to: "#general", message: "hello", client_message_id: "order-1" };
const other = { to: "#general", message: "goodbye", client_message_id: "order-1" };

/** Sends once, then puts the row into a state as a drain or an operator would have. */
async function givenRow(daemon: TestDaemon, status: string, columns: Record<string, string | number> = {}) {
  const first = await daemon.send(same);
  expect(first.status).toBe(202);
  const assignments = Object.entries({ status, ...columns });
  daemon
    .outboxDb()
    .sql(`UPDATE outbox SET ${assignments.map(([column]) => `${column} = ?`).join(", ")} WHERE client_message_id = ?`)
    .run(...assignments.map(([, value]) => value), "order-1");
  return first.body as { outbox_id: string; request_fingerprint: string };
}

function snapshot(daemon: TestDaemon) {
  return daemon.outboxDb().sql("SELECT * FROM outbox").all();
}

async function expectConflict(status: string, request: object, match: "match" | "mismatch", columns = {}) {
  const daemon = await startTestDaemon();
  const first = await givenRow(daemon, status, columns);
  const before = snapshot(daemon);
  const answer = await daemon.send(request);
  expect(answer.status).toBe(409);
  expect(answer.body).toMatchObject({
    error: "idempotency_key_reused",
    retryable: false,
    conflict: `outbox_${status}_fingerprint_${match}`,
    client_message_id: "order-1",
    daemon_fingerprint_prefix: expect.stringMatching(prefix),
    stored_fingerprint_prefix: first.request_fingerprint,
  });
  expect(answer.body.message.length).toBeGreaterThan(0);
  expect(answer.body.daemon_fingerprint_prefix === first.request_fingerprint).toBe(match === "match");
  expect(snapshot(daemon)).toEqual(before);
  return answer.body;
}

describe("the eleven rows of POST /v1/send", () => {
  it("no row: 202 queued, and the row is durable and pending", async () => {
    const daemon = await startTestDaemon();
    const answer = await daemon.send(same);
    expect(answer.status).toBe(202);
    expect(answer.body).toEqual({
      client_message_id: "order-1",
      outbox_id: expect.stringMatching(/^[0-9A-Z]{26}$/),
      status: "queued",
      duplicate: false,
      request_fingerprint: expect.stringMatching(prefix),
      broker: "away",
    });
    expect(snapshot(daemon)).toMatchObject([{ client_message_id: "order-1", status: "pending", attempts: 0 }]);
  });

  it("pending, match: 202 queued, duplicate, nothing changes", async () => {
    const daemon = await startTestDaemon();
    const first = await givenRow(daemon, "pending");
    const before = snapshot(daemon);
    const answer = await daemon.send(same);
    expect(answer.status).toBe(202);
    expect(answer.body).toEqual({ ...first, status: "queued", duplicate: true });
    expect(snapshot(daemon)).toEqual(before);
  });

  it("pending, mismatch: 409", async () => {
    await expectConflict("pending", other, "mismatch");
  });

  it("inflight, match: 202 inflight, duplicate", async () => {
    const daemon = await startTestDaemon();
    const first = await givenRow(daemon, "inflight");
    const answer = await daemon.send(same);
    expect(answer.status).toBe(202);
    expect(answer.body).toEqual({ ...first, status: "inflight", duplicate: true });
  });

  it("inflight, mismatch: 409", async () => {
    await expectConflict("inflight", other, "mismatch");
  });

  it("done, match: 200 with what the broker gave, and no call to the broker", async () => {
    const daemon = await startTestDaemon();
    const first = await givenRow(daemon, "done", { broker_message_id: brokerId, history_id: 7 });
    daemon.link.goOnline();
    const answer = await daemon.send(same);
    await settle();
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      client_message_id: "order-1",
      outbox_id: first.outbox_id,
      status: "done",
      duplicate: true,
      broker_message_id: brokerId,
      history_id: 7,
      request_fingerprint: first.request_fingerprint,
    });
    expect(daemon.link.ofKind("send")).toEqual([]);
  });

  it("done, mismatch: 409 naming the broker's message", async () => {
    const body = await expectConflict("done", other, "mismatch", { broker_message_id: brokerId, history_id: 7 });
    expect(body.broker_message_id).toBe(brokerId);
  });

  it("dead, match: 409 with the reason, never retried by itself", async () => {
    const body = await expectConflict("dead", same, "match", { last_error: "not_found: no such topic" });
    expect(body.reason).toBe("not_found: no such topic");
    expect(body.message).toContain("claudemesh status");
  });

  it("dead, mismatch: 409", async () => {
    await expectConflict("dead", other, "mismatch");
  });

  it("aborted, match: 409", async () => {
    await expectConflict("aborted", same, "match");
  });

  it("aborted, mismatch: 409", async () => {
    await expectConflict("aborted", other, "mismatch");
  });
});

describe("a send with an id", () => {
  it("takes its id from the Idempotency-Key header, bare or quoted", async () => {
    const daemon = await startTestDaemon();
    const bare = await daemon.send({ to: "#general", message: "hello" }, { "idempotency-key": "key-1" });
    const quoted = await daemon.send({ to: "#general", message: "hello" }, { "idempotency-key": '"key-1"' });
    expect(bare.body).toMatchObject({ client_message_id: "key-1", duplicate: false });
    expect(quoted.body).toMatchObject({ client_message_id: "key-1", duplicate: true });
  });

  it("is refused when header and body name different ids", async () => {
    const daemon = await startTestDaemon();
    const answer = await daemon.send(same, { "idempotency-key": "order-2" });
    expect([answer.status, answer.body.error]).toEqual([400, "idempotency_key_ambiguous"]);
    expect(daemon.rowCount()).toBe(0);
  });

  it("gets a fresh ULID where it brings none, another one each time", async () => {
    const daemon = await startTestDaemon();
    const answers = await Promise.all([1, 2, 3].map(() => daemon.send({ to: "#general", message: "hello" })));
    const ids = new Set(answers.map(({ body }) => body.client_message_id));
    expect(ids.size).toBe(3);
    for (const id of ids) expect(id).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  });

  it("that is an exact retry is answered although the limit has fallen since", async () => {
    const daemon = await startTestDaemon();
    const request = { to: "#general", message: "x".repeat(2_000), client_message_id: "order-1" };
    await daemon.send(request);
    daemon.link.automatic.set("send", () => ({ type: "not_sent" }));
    daemon.link.goOnline({ dedupe: { mode: "permanent" }, inlineBytes: 1_024, connectionPolicy: "prefer_newest" });
    const late = await daemon.send({ ...request, client_message_id: "order-2" });
    expect([late.status, late.body.error]).toEqual([413, "payload_too_large"]);
    // Queued, or just on its way once more: the link is up.
    expect(await daemon.send(request)).toMatchObject({ status: 202, body: { duplicate: true } });
    expect(daemon.rowCount()).toBe(1);
  });

  it("that is an exact retry is answered although the outbox is full", async () => {
    const daemon = await startTestDaemon({ overrides: { outbox: { max_bytes: 262_144 } } });
    const request = (index: number) => ({
      to: "#general",
      message: "x".repeat(8_000),
      client_message_id: `order-${index}`,
    });
    let accepted = 0;
    for (;;) {
      const answer = await daemon.send(request(accepted));
      if (answer.status !== 202) {
        expect([answer.status, answer.body.error, answer.body.retryable]).toEqual([507, "insufficient_storage", true]);
        break;
      }
      accepted++;
    }
    expect(accepted).toBeGreaterThan(5);
    expect(daemon.rowCount()).toBe(accepted);
    expect((await daemon.send(request(0))).body).toMatchObject({ duplicate: true });
    expect((await daemon.send({ ...request(0), message: "other" })).status).toBe(409);
  });

  it("that is an exact retry is answered although the peer has left, and means the peer it meant", async () => {
    const daemon = await startTestDaemon();
    const bob = generateMemberKeys().ed25519.public_key;
    let members = [{ pubkey: bob, name: "bob" }];
    daemon.link.automatic.set("members.list", () => ({
      type: "answered",
      status: 200,
      body: { items: members, next_cursor: null },
    }));
    daemon.link.automatic.set("send", () => ({ type: "not_sent" }));
    daemon.link.goOnline();
    const request = { to: "@bob", message: "hello", client_message_id: "order-1" };
    const first = await daemon.send(request);
    expect(first.status).toBe(202);
    members = [];
    daemon.link.goOnline();
    await settle();
    const again = await daemon.send(request);
    expect(again.body).toMatchObject({ duplicate: true, request_fingerprint: first.body.request_fingerprint });
    expect((await daemon.send({ ...request, to: `dm:${bob}` })).body).toMatchObject({ duplicate: true });
    const strange = await daemon.send({ ...request, to: "@carol" });
    expect([strange.status, strange.body.conflict]).toEqual([409, "outbox_pending_fingerprint_mismatch"]);
    const unknown = await daemon.send({ ...request, client_message_id: "order-2" });
    expect([unknown.status, unknown.body.error]).toEqual([404, "destination_not_found"]);
    expect(daemon.rowCount()).toBe(1);
  });
});

describe("racing sends", () => {
  it("of one id and one content: one row, one first answer, every other a duplicate", async () => {
    const daemon = await startTestDaemon();
    for (let round = 0; round < 10; round++) {
      const request = { to: "#general", message: "hello", client_message_id: `race-${round}` };
      const answers = await Promise.all(Array.from({ length: 16 }, () => daemon.send(request)));
      expect(answers.map(({ status }) => status)).toEqual(Array(16).fill(202));
      expect(answers.filter(({ body }) => body.duplicate === false)).toHaveLength(1);
      expect(new Set(answers.map(({ body }) => body.outbox_id)).size).toBe(1);
    }
    expect(daemon.rowCount()).toBe(10);
  });

  it("of one id and two contents: one content wins, the other is refused with a conflict", async () => {
    const daemon = await startTestDaemon();
    for (let round = 0; round < 10; round++) {
      const request = (message: string) => ({ to: "#general", message, client_message_id: `race-${round}` });
      const messages = Array.from({ length: 16 }, (_, index) => (index % 2 === 0 ? "left" : "right"));
      const answers = await Promise.all(messages.map((message) => daemon.send(request(message))));
      const winner = messages[answers.findIndex(({ body }) => body.duplicate === false)];
      for (const [index, answer] of answers.entries()) {
        expect(answer.status).toBe(messages[index] === winner ? 202 : 409);
        if (answer.status === 409) expect(answer.body.conflict).toBe("outbox_pending_fingerprint_mismatch");
      }
    }
    expect(daemon.rowCount()).toBe(10);
  });
});

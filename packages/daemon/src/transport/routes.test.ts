import { nodeSha256 } from "@claudemesh/client/internal/node-sha256";
import { generateMemberKeys } from "@claudemesh/client/keys";
import { composeEnvelope, loadSealer } from "@claudemesh/client/seal";
import { readSendContent } from "@claudemesh/protocol/messages/send-request";
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import { describe, expect, it } from "vitest";
import { settle } from "../testing/scripted-link.ts";
import { startTestDaemon, type TestDaemon } from "../testing/test-daemon.ts";

const sender = "ab".repeat(32);

function message(historyId: number, given: Partial<HistoryItem> = {}): HistoryItem {
  return {
    history_id: historyId,
    broker_message_id: `01890000-0000-7000-8000-${String(historyId).padStart(12, "0")}`,
    client_message_id: `message-${historyId}`,
    destination: { kind: "topic", ref: "general" },
    sender_pubkey: sender,
    envelope_version: "1",
    body: `text ${historyId}`,
    meta: null,
    priority: "next",
    reply_to_id: null,
    accepted_at: 1_700_000_000_000,
    ...given,
  };
}

async function push(daemon: TestDaemon, ...items: HistoryItem[]) {
  daemon.link.automatic.set("ack", () => ({ type: "answered", status: 200, body: {} }));
  for (const item of items) daemon.link.options?.onPush({ type: "message", ...item });
  await settle();
}

describe("GET /v1/inbox", () => {
  it("shows what arrived, oldest first, each message with all its facts", async () => {
    const daemon = await startTestDaemon();
    daemon.link.automatic.set("members.list", () => ({
      type: "answered",
      status: 200,
      body: { items: [{ pubkey: sender, name: "bob" }] },
    }));
    daemon.link.goOnline();
    await push(daemon, message(1, { meta: { a: 1 }, reply_to_id: "m0", priority: "now" }), message(2));
    const { status, body } = await daemon.call("GET", "/v1/inbox");
    expect(status).toBe(200);
    expect(body.next_cursor).toBeNull();
    expect(body.items.map((item: { history_id: number }) => item.history_id)).toEqual([1, 2]);
    expect(body.items[0]).toEqual({
      id: expect.stringMatching(/^[0-9A-Z]{26}$/),
      client_message_id: "message-1",
      broker_message_id: "01890000-0000-7000-8000-000000000001",
      history_id: 1,
      mesh: "acme",
      topic: "general",
      sender_pubkey: sender,
      sender_name: "bob",
      body: "text 1",
      sealed: false,
      meta: { a: 1 },
      priority: "now",
      reply_to_id: "m0",
      received_at: expect.any(Number),
      read_at: null,
    });
  });

  it("opens what was sealed for this member, and never shows what it cannot open as text", async () => {
    const daemon = await startTestDaemon();
    const bob = generateMemberKeys();
    const dm = { kind: "dm", ref: daemon.keys.ed25519.public_key } as const;
    const { envelope: sealed } = composeEnvelope(
      { sealer: await loadSealer(bob), sha256: nodeSha256 },
      {
        clientMessageId: "message-1",
        destination: dm,
        content: readSendContent({ message: "for your eyes", meta: { a: 1 } }),
      },
    );
    const from = { destination: dm, sender_pubkey: bob.ed25519.public_key, envelope_version: "3" } as const;
    const { body: _, ...envelope } = message(1, from);
    const { body: __, ...other } = message(2, from);
    const garbage = Buffer.from("not a box at all, but long enough to be one, perhaps");
    await push(
      daemon,
      { ...envelope, body_base64: Buffer.from(sealed.body).toString("base64") },
      { ...other, body_base64: garbage.toString("base64") },
    );
    const { body } = await daemon.call("GET", "/v1/inbox");
    expect(body.items[0]).toMatchObject({ body: "for your eyes", topic: null, sealed: true, meta: { a: 1 } });
    expect(body.items[0]).not.toHaveProperty("unreadable");
    expect(body.items[1]).toMatchObject({ body: null, unreadable: true, sealed: true });
    expect(JSON.stringify(body)).not.toContain(garbage.toString("base64"));
    const health = await daemon.call("GET", "/v1/health");
    expect(health.body.inbox.unreadable).toBe(1);
  });

  it("shows bytes that are no text as base64", async () => {
    const daemon = await startTestDaemon();
    const { body: _, ...envelope } = message(1);
    await push(daemon, { ...envelope, body_base64: "//79" });
    const { body } = await daemon.call("GET", "/v1/inbox");
    expect(body.items[0]).toMatchObject({ body: null, body_base64: "//79" });
  });

  it("goes page by page without a gap or a repeat", async () => {
    const daemon = await startTestDaemon();
    await push(daemon, ...[1, 2, 3, 4, 5].map((id) => message(id)));
    const seen: number[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const query: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const { body } = await daemon.call("GET", `/v1/inbox?limit=2${query}`);
      expect(body.items.length).toBeLessThanOrEqual(2);
      seen.push(...body.items.map((item: { history_id: number }) => item.history_id));
      cursor = body.next_cursor;
    }
    expect(seen).toEqual([1, 2, 3, 4, 5]);
  });

  it("filters by topic, by sender's name or key, and by time", async () => {
    const daemon = await startTestDaemon();
    const carol = "cd".repeat(32);
    daemon.link.automatic.set("members.list", () => ({
      type: "answered",
      status: 200,
      body: {
        items: [
          { pubkey: sender, name: "bob" },
          { pubkey: carol, name: "carol" },
        ],
      },
    }));
    daemon.link.goOnline();
    const other = { kind: "topic", ref: "other" } as const;
    await push(daemon, message(1), message(2, { destination: other }), message(3, { sender_pubkey: carol }));
    const ids = async (query: string) => {
      const { body } = await daemon.call("GET", `/v1/inbox${query}`);
      return body.items.map((item: { history_id: number }) => item.history_id);
    };
    expect(await ids("?topic=other")).toEqual([2]);
    expect(await ids("?topic=%23general")).toEqual([1, 3]);
    expect(await ids("?from=@carol")).toEqual([3]);
    expect(await ids("?from=bob")).toEqual([1, 2]);
    expect(await ids(`?from=dm:${carol}`)).toEqual([3]);
    expect(await ids("?from=@ghost")).toEqual([]);
    expect(await ids("?from=@self")).toEqual([]);
    expect(await ids("?from=bob&topic=general")).toEqual([1]);
    const { body } = await daemon.call("GET", "/v1/inbox");
    const receivedAt = body.items[0].received_at as number;
    expect(await ids(`?since=${receivedAt}`)).toEqual([1, 2, 3]);
    expect(await ids(`?since=${new Date(receivedAt).toISOString()}`)).toEqual([1, 2, 3]);
    expect(await ids(`?since=${receivedAt + 60_000}`)).toEqual([]);
  });
});

describe("GET /v1/outbox", () => {
  it("lists rows by status, oldest first, with every column but the payload", async () => {
    const daemon = await startTestDaemon();
    for (const id of ["a", "b", "c"]) {
      await daemon.send({ to: "#general", message: "secret text", client_message_id: id, meta: { k: [1] } });
    }
    daemon.outboxDb().sql("UPDATE outbox SET status = 'dead', attempts = 1 WHERE client_message_id = 'b'").run();
    const dead = await daemon.call("GET", "/v1/outbox?status=dead");
    expect(dead.body.items).toMatchObject([
      {
        id: expect.any(String),
        client_message_id: "b",
        to: "#general",
        destination_kind: "topic",
        destination_ref: "general",
        priority: "next",
        meta: { k: [1] },
        reply_to_id: null,
        envelope_version: "1",
        request_fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/),
        wire_fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
        status: "dead",
        fate: "refused",
        enqueued_at: expect.any(Number),
        attempts: 1,
        unanswered: 0,
        fenced: false,
        next_attempt_at: expect.any(Number),
        last_error: null,
        delivered_at: null,
        broker_message_id: null,
        history_id: null,
        aborted_at: null,
        aborted_by: null,
        superseded_by: null,
      },
    ]);
    expect(dead.body.items[0]).not.toHaveProperty("payload");
    const first = await daemon.call("GET", "/v1/outbox?limit=2");
    const second = await daemon.call("GET", `/v1/outbox?limit=2&cursor=${first.body.next_cursor}`);
    const ids = [...first.body.items, ...second.body.items].map(
      (row: { client_message_id: string }) => row.client_message_id,
    );
    expect(ids).toEqual(["a", "b", "c"]);
    expect(second.body.next_cursor).toBeNull();
    expect(JSON.stringify(first.body)).not.toContain("secret text");
  });

  it("finds one row by either id, with the chain of those that replaced each other", async () => {
    const daemon = await startTestDaemon();
    const rows: string[] = [];
    for (const id of ["first/1", "second", "third"]) {
      rows.push((await daemon.send({ to: "#general", message: "m", client_message_id: id })).body.outbox_id);
    }
    const db = daemon.outboxDb();
    for (const [old, next] of [
      [rows[0], rows[1]],
      [rows[1], rows[2]],
    ] as [string, string][]) {
      db.sql(
        "UPDATE outbox SET status = 'aborted', aborted_at = 1, aborted_by = 'operator', superseded_by = ? WHERE id = ?",
      ).run(next, old);
    }
    for (const id of [rows[0], "first%2F1", rows[1], "third"]) {
      const { status, body } = await daemon.call("GET", `/v1/outbox/${id}`);
      expect(status).toBe(200);
      expect(body.chain.map((row: { id: string }) => row.id)).toEqual(rows);
    }
    expect((await daemon.call("GET", `/v1/outbox/${rows[1]}`)).body.row).toMatchObject({
      client_message_id: "second",
      status: "aborted",
    });
    expect((await daemon.call("GET", "/v1/outbox/nothing")).body.error).toBe("not_found");
  });
});

describe("GET /v1/health and /v1/version", () => {
  it("say who and where, and how things are", async () => {
    const daemon = await startTestDaemon({ version: "9.9.9" });
    const version = await daemon.call("GET", "/v1/version");
    expect(version.body).toMatchObject({ version: "9.9.9", mesh: "acme", pid: process.pid, protocol: 2 });
    const away = await daemon.call("GET", "/v1/health");
    expect(away.body).toMatchObject({ status: "degraded", broker: { state: "connecting" } });
    daemon.link.goOnline();
    await daemon.send({ to: "#general", message: "m" });
    const online = await daemon.call("GET", "/v1/health");
    expect(online.body).toMatchObject({ status: "ok", broker: { state: "online" }, drain: { state: "running" } });
    expect(online.body.outbox).toMatchObject({ dead: 0, used_bytes: expect.any(Number) });
  });

  it("say why draining stopped when the broker refuses this member, until the next hello", async () => {
    // The daemon would say hello anew by itself; here the test does.
    const daemon = await startTestDaemon({ overrides: { outbox: { backoff_min_ms: 60_000 } } });
    daemon.link.automatic.set("send", () => ({
      type: "answered",
      status: 401,
      body: { error: "unauthorized", message: "revoked", retryable: false },
    }));
    daemon.link.goOnline();
    await daemon.send({ to: "#general", message: "m" });
    await settle();
    const { body } = await daemon.call("GET", "/v1/health");
    expect(body.drain).toEqual({ state: "halted", reason: "unauthorized", detail: "unauthorized: revoked" });
    expect(body).toMatchObject({ status: "degraded", outbox: { pending: 1, inflight: 0 } });
    daemon.link.automatic.delete("send");
    daemon.link.goOnline();
    await daemon.link.requested("send");
    expect((await daemon.call("GET", "/v1/health")).body.drain).toEqual({ state: "running" });
  });
});

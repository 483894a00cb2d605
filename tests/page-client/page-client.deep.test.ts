// docs/protocol.md is enough: a client written from that page alone does with a real broker what a member does.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LongRunning } from "../support/process.ts";
import { createMesh, fingerprintOf, joinMesh, Keys, PageClient, refusalOf } from "./page-client.ts";

const folder = mkdtempSync(join(tmpdir(), "cm-page-"));
let broker: LongRunning<{ readonly url: string; readonly admin_token_file: string }>;
let url = "";
let meshId = "";
const [alice, bob] = [new Keys(), new Keys()];

beforeAll(async () => {
  broker = new LongRunning(["broker", "serve", "--listen", "127.0.0.1:0", "--log-level", "warn"], { home: folder });
  const ready = await broker.ready;
  url = ready.url;
  const adminToken = readFileSync(ready.admin_token_file, "utf8").trim();
  const created = await createMesh(url, adminToken, "acme", "alice", alice);
  expect(created).toMatchObject({ status: 201, body: { mesh: "acme", member_pubkey: alice.publicKey, role: "owner" } });
  meshId = String(created.body.mesh_id);
  expect((await createMesh(url, adminToken, "acme", "alice", alice)).status).toBe(200);
  const owner = await PageClient.connect(url, { meshId, keys: alice, kind: "client" });
  const { body } = await owner.ask("invite.create", { expires_in_s: 600 });
  expect(await joinMesh(String(body.invite), "bob", bob)).toMatchObject({ status: 201, body: { name: "bob" } });
  // This client does not seal.
  expect((await owner.ask("mesh.set", { key: "dm_policy", value: "any" })).status).toBe(200);
  await owner.close();
});
afterAll(async () => {
  await broker.kill();
  rmSync(folder, { recursive: true, force: true });
});

const connect = (keys: Keys, kind: "daemon" | "client") => PageClient.connect(url, { meshId, keys, kind });

describe("a client that knows nothing but docs/protocol.md", () => {
  test("needs nothing of this repository", () => {
    const source = readFileSync(new URL("./page-client.ts", import.meta.url), "utf8");
    const imported = [...source.matchAll(/from "([^"]+)"/g)].map(([, name = ""]) => name);
    expect(imported.filter((name) => !name.startsWith("node:"))).toEqual(["ws"]);
  });

  test("negotiates, and names what is wrong with features that do not fit", async () => {
    const client = await connect(alice, "client");
    const { features } = client;
    const change = (name: string, change: object) => ({ ...features, [name]: { ...features[name], ...change } });
    expect(refusalOf(features)).toBeUndefined();
    expect(refusalOf({ ...features, max_payload: undefined })).toBe(4010);
    expect(refusalOf(change("client_message_id_dedupe", { version: 3 }))).toBe(4011);
    expect(refusalOf(change("client_message_id_dedupe", { dedupe_retention_days: 6 }))).toBe(4012);
    expect(refusalOf(change("max_payload", { inline_bytes: 1023 }))).toBe(4012);
    await client.close();
  });

  test("is refused with 401 when its signature is another's", async () => {
    const keys = new Keys();
    await expect(PageClient.connect(url, { meshId, keys, kind: "client" })).rejects.toThrow("401");
  });

  test("sends once however often it sends, receives, acknowledges, and gets nothing twice", async () => {
    const [sender, receiver] = [await connect(alice, "client"), await connect(bob, "daemon")];
    const note = { kind: "dm", ref: bob.publicKey, body: "grüße 🦊", meta: { run: 42, by: "page" } } as const;
    const first = await sender.send("note-1", note);
    expect(first).toMatchObject({ status: 201, body: { client_message_id: "note-1", duplicate: false } });
    expect(await sender.send("note-1", note)).toMatchObject({
      status: 200,
      body: { broker_message_id: first.body.broker_message_id, duplicate: true, history_available: true },
    });
    expect(await sender.send("note-1", { ...note, body: "other" })).toMatchObject({
      status: 409,
      body: { error: "idempotency_key_reused", conflict: "request_fingerprint_mismatch" },
    });
    const pushed = await receiver.nextMessage();
    expect(pushed).toMatchObject({ client_message_id: "note-1", body: note.body, meta: note.meta, reply_to_id: null });

    // Not acknowledged, it comes again; acknowledged, it does not.
    await receiver.close();
    const again = await connect(bob, "daemon");
    const redelivered = await again.nextMessage();
    expect(redelivered.history_id).toBe(pushed.history_id);
    expect((await again.ask("ack", { history_ids: [redelivered.history_id] })).status).toBe(200);
    await again.close();
    const last = await connect(bob, "daemon");
    await sender.send("note-2", { ...note, body: "second" });
    expect((await last.nextMessage()).client_message_id).toBe("note-2");
    const history = await last.ask("history", { after: 0, limit: 100 });
    expect(history.body).toMatchObject({
      items: [{ client_message_id: "note-1" }, { client_message_id: "note-2" }],
      next_after: null,
    });
    await Promise.all([sender.close(), last.close()]);
  });

  test("asks for the fate of a send by its fingerprint, and settles it with a fence", async () => {
    const sender = await connect(alice, "client");
    await sender.ask("topic.create", { name: "builds" });
    const green = {
      kind: "topic",
      ref: "builds",
      body: "build 42 is green",
      priority: "now",
      replyToId: "r-1",
      meta: { b: 2, a: "1" },
    } as const;
    const fate = (type: "fate" | "fence", id: string) =>
      sender.ask(type, { client_message_id: id, fingerprint: fingerprintOf(green) });
    expect((await fate("fate", "green-1")).body).toEqual({ fate: "none" });
    const accepted = await sender.send("green-1", green);
    const { broker_message_id, history_id } = accepted.body;
    expect((await fate("fence", "green-1")).body).toMatchObject({ fate: "committed", broker_message_id, history_id });
    expect((await fate("fence", "green-2")).body).toEqual({ fate: "fenced" });
    expect(await sender.send("green-2", green)).toMatchObject({ status: 409, body: { error: "fenced" } });
    expect((await fate("fate", "note-1")).body).toEqual({ fate: "taken" });
    await sender.close();
  });

  test("shares a queue with others, and does over HTTP with a token what it does over the socket", async () => {
    const client = await connect(bob, "client");
    await client.ask("queue.create", { queue: "jobs" });
    await client.send("job-1", { kind: "queue", ref: "jobs", body: "build 42" });
    const lease = await client.ask("queue.lease", { queue: "jobs", lease_request_id: "r1", max: 5, lease_s: 60 });
    expect(lease.body.items).toMatchObject([{ client_message_id: "job-1", deliveries: 1 }]);
    const [item] = lease.body.items as { broker_message_id: string }[];
    const { body } = await client.ask("token.create", { label: "ci" });
    const answer = await fetch(`${url}/v1/meshes/acme/queues/jobs/ack`, {
      method: "POST",
      headers: { authorization: `Bearer ${body.token}`, "content-type": "application/json" },
      body: JSON.stringify({ lease_token: lease.body.lease_token, broker_message_ids: [item?.broker_message_id] }),
    });
    expect([answer.status, await answer.json()]).toMatchObject([200, { items: [{ settlement: "acked" }] }]);
    await client.close();
  });

  test("hears by close codes why a connection ended", async () => {
    const older = await connect(bob, "daemon");
    const newer = await connect(bob, "daemon");
    expect(await older.closed).toBe(4003);
    const stopped = newer.closed;
    await broker.kill("SIGTERM");
    expect(await stopped).toBe(1012);
  });
});

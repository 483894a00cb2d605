// A broker process under orders and under load: it stops in order when it gets a signal, and its log does not show what
// it was sent.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import { createMeshBytes, joinBytes } from "@claudemesh/protocol/wire/signing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { callBroker, TestMember } from "./support/broker-harness.ts";
import { createPeerKeys } from "./support/peer-keys.ts";
import { LongRunning, runJson } from "./support/process.ts";
import { RawPeer } from "./support/raw-peer.ts";
import { WebhookReceiver } from "./support/webhook-receiver.ts";

type Ready = { readonly url: string; readonly admin_token_file: string };

let folder: string;
let broker: LongRunning<Ready>;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cm-manners-"));
});
afterEach(async () => {
  await broker.kill();
  rmSync(folder, { recursive: true, force: true });
});

async function start(flags: readonly string[], failpoints = ""): Promise<{ owner: TestMember; adminToken: string }> {
  broker = new LongRunning(["broker", "serve", "--listen", "127.0.0.1:0", ...flags], {
    home: folder,
    env: failpoints === "" ? {} : { CLAUDEMESH_FAILPOINTS: failpoints },
  });
  const { url, admin_token_file: file } = await broker.ready;
  const adminToken = readFileSync(file, "utf8").trim();
  const keys = createPeerKeys();
  const signature = keys.sign(createMeshBytes({ name: "acme", owner_name: "alice", owner_pubkey: keys.pubkey }));
  const body = { name: "acme", owner: { name: "alice", pubkey: keys.pubkey }, signature };
  const created = await callBroker(url, "POST", "/v1/meshes", { token: adminToken, body });
  expect(created.status).toBe(201);
  return { owner: new TestMember(url, keys, created.body), adminToken };
}

describe("SIGTERM", () => {
  test("answers what is in flight, closes sockets with 1012, takes no new caller, and exits 0 within 10 s", async () => {
    const { owner } = await start(["--webhook-allow-private"], "accept.after_b0=delay:1500");
    const receiver = await WebhookReceiver.start(() => () => undefined);
    await owner.call("POST", "/topics", { name: "builds" });
    await owner.call("POST", "/webhooks", { id: "ci", url: receiver.url });
    const destination = { kind: "topic", ref: "builds" };
    await owner.call("POST", "/messages", { client_message_id: "m0", destination, body: "x" });
    // A webhook whose receiver never answers has a request under way as well.
    await expect.poll(() => receiver.received.length, { timeout: 10_000 }).toBe(1);
    const peer = await owner.connect("client");
    const idle = await RawPeer.dial(owner.url);
    const overSocket = peer.request("send", { client_message_id: "m1", destination, body: "x" });
    const overHttp = owner.call("POST", "/messages", { client_message_id: "m2", destination, body: "x" });
    // Both left before this one, so that the broker has them under way when it answers.
    expect((await fetch(`${owner.url}/healthz`)).status).toBe(200);
    const began = performance.now();
    process.kill(broker.pid, "SIGTERM");
    expect((await overSocket).status).toBe(201);
    expect((await overHttp).status).toBe(201);
    expect((await peer.closed).code).toBe(1012);
    expect((await idle.closed).code).toBe(1012);
    await expect(fetch(`${owner.url}/healthz`)).rejects.toThrow();
    expect(await broker.exited).toEqual({ code: 0, signal: null });
    expect(performance.now() - began).toBeLessThan(10_000);
    await receiver.stop();
  });

  test("ends `claudemesh up` with 0 too, whatever hangs in it", async () => {
    broker = new LongRunning(["up", "--listen", "127.0.0.1:0"], {
      home: folder,
      env: { CLAUDEMESH_FAILPOINTS: "accept.after_b0=delay:600000" },
    });
    await broker.ready;
    await runJson(["send", "@self", "hello"], { home: folder });
    process.kill(broker.pid, "SIGTERM");
    expect(await broker.exited).toEqual({ code: 0, signal: null });
  });
});

describe("the log, at its most talkative", () => {
  test("holds no bodies, meta, tokens, invites or secrets, whatever went wrong", async () => {
    const marks = ["BODY", "META", "SECRET", "TOKEN", "QUERY", "HEADER", "FRAME"].map((word) => `MARK-${word}-MARK`);
    const [body = "", meta = "", secret = "", token = "", query = "", header = "", frame = ""] = marks;
    const { owner, adminToken } = await start(
      ["--log-level", "trace", "--webhook-allow-private", "--webhook-attempts", "1"],
      "accept.before_commit@3=error",
    );
    const receiver = await WebhookReceiver.start(() => 500);
    const destination = { kind: "topic", ref: "builds" };
    const message = { destination, body, meta: { note: meta } };
    await owner.call("POST", "/topics", { name: "builds" });
    await owner.call("POST", "/webhooks", { id: "ci", url: receiver.url, secret: secret.repeat(2) });
    for (const id of ["m1", "m2", "m3", "m4"])
      await owner.call("POST", "/messages", { client_message_id: id, ...message });
    await owner.call("POST", "/messages", { client_message_id: "m1", ...message, body: `${body} changed` });
    await owner.call("POST", "/messages", { client_message_id: "m5", ...message, [body]: body });
    await owner.call("POST", "/messages", `{"client_message_id": "${body}`);
    await callBroker(owner.url, "GET", "/v1/meshes/acme/history", { token });
    await fetch(`${owner.url}/v1/meshes/acme/history?token=${query}`, { headers: { "x-secret": header } });
    await fetch(`${owner.url}/${query}/nowhere`);
    const invited = await owner.call("POST", "/invites");
    const invite = decodeInvite(String(invited.body.invite));
    const keys = createPeerKeys();
    const joined = { mesh_id: invite.mesh_id, secret: invite.secret, name: "bob", pubkey: keys.pubkey };
    const request = { secret: invite.secret, name: "bob", pubkey: keys.pubkey };
    await callBroker(owner.url, "POST", "/v1/meshes/acme/join", {
      body: { ...request, signature: keys.sign(joinBytes({ ...joined, name: "other" })) },
    });
    await callBroker(owner.url, "POST", "/v1/meshes/acme/join", {
      body: { ...request, signature: keys.sign(joinBytes(joined)) },
    });
    const peer = await owner.connect("daemon");
    peer.sendText(`{"type":"${frame}","id":9,"x":"${frame}"}`);
    peer.sendText(`{"${frame}`);
    await peer.closed;
    await expect.poll(() => receiver.received.length, { timeout: 10_000 }).toBeGreaterThan(2);
    await broker.kill("SIGTERM");
    await receiver.stop();

    const log = broker.stderr;
    expect(log).toContain('"event":"refused"');
    expect(log).toContain('"event":"connected"');
    const secrets = [...marks, adminToken, invite.secret, String(invited.body.invite), await owner.token()];
    expect(secrets.filter((text) => log.includes(text))).toEqual([]);
  });
});

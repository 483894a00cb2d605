// A broker's life: what it leaves on disk, who else may start, how it stops, and what it knows after a restart or a
// SIGKILL in the middle of an accept.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { FailpointSyntaxError } from "@claudemesh/storage/failpoints";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import {
  callBroker,
  createTestMesh,
  joinTestMesh,
  makeTemporaryFolder,
  readAdminToken,
  startTestBroker,
  startTestPair,
  type TestMember,
} from "../../../tests/support/broker-harness.ts";

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

afterEach(() => {
  vi.useRealTimers();
});

describe("a start", () => {
  test("says where it serves, and serves health and readiness to any caller", async () => {
    const broker = await startTestBroker();
    expect(broker.url).toMatch(/^http:\/\/127\.0\.0\.1:[1-9][0-9]*$/);
    expect(await callBroker(broker.url, "GET", "/healthz")).toMatchObject({ status: 200, body: { status: "ok" } });
    expect(await callBroker(broker.url, "GET", "/readyz")).toMatchObject({ status: 200, body: { status: "ready" } });
  });

  test("keeps its store and its admin token from others, in a folder that it makes", async () => {
    const folder = join(makeTemporaryFolder(), "made");
    const broker = await startTestBroker({ folder });
    expect(modeOf(folder)).toBe("700");
    expect(modeOf(broker.storePath)).toBe("600");
    expect(modeOf(broker.adminTokenFile)).toBe("600");
    expect(readAdminToken(broker)).toMatch(/^cma_[\w-]{43}$/);
  });

  test("keeps the admin token over restarts, and makes it anew only when it is gone", async () => {
    const folder = makeTemporaryFolder();
    const first = await startTestBroker({ folder });
    const token = readAdminToken(first);
    await first.stop();
    const second = await startTestBroker({ folder });
    expect(readAdminToken(second)).toBe(token);
    await second.stop();
    rmSync(second.adminTokenFile);
    const third = await startTestBroker({ folder });
    expect(readAdminToken(third)).toMatch(/^cma_/);
    expect(readAdminToken(third)).not.toBe(token);
  });

  test("refuses an admin token that others can read, and one that is empty", async () => {
    const folder = makeTemporaryFolder();
    const broker = await startTestBroker({ folder });
    await broker.stop();
    chmodSync(broker.adminTokenFile, 0o640);
    await expect(startTestBroker({ folder })).rejects.toThrow("chmod 600");
    chmodSync(broker.adminTokenFile, 0o600);
    writeFileSync(broker.adminTokenFile, "\n");
    await expect(startTestBroker({ folder })).rejects.toThrow("is empty");
  });

  test("beside a broker on the same store is refused, and the first one goes on", async () => {
    const folder = makeTemporaryFolder();
    const first = await startTestBroker({ folder });
    await expect(startTestBroker({ folder })).rejects.toMatchObject({ name: "StorageError", kind: "locked" });
    expect((await callBroker(first.url, "GET", "/readyz")).status).toBe(200);
    await createTestMesh(first);
    await first.stop();
    const second = await startTestBroker({ folder });
    expect((await callBroker(second.url, "GET", "/readyz")).status).toBe(200);
  });

  test("on a port that is taken fails and leaves nothing behind", async () => {
    const first = await startTestBroker();
    const folder = makeTemporaryFolder();
    const timers = vi.spyOn(globalThis, "setInterval");
    const cleared = vi.spyOn(globalThis, "clearInterval");
    const listen = new URL(first.url).host;
    await expect(startTestBroker({ folder, flags: { listen } })).rejects.toMatchObject({
      code: "EADDRINUSE",
      message: expect.stringContaining(`Cannot listen on ${listen}: another program has it. Choose another`),
    });
    const left = timers.mock.results.filter(({ value }) => !cleared.mock.calls.some(([timer]) => timer === value));
    expect(left).toEqual([]);
    vi.restoreAllMocks();
    // The lock on the store is free again.
    await startTestBroker({ folder });
  });

  test("on a path that is no file, or with a fault point that does not exist, is refused", async () => {
    const folder = makeTemporaryFolder();
    mkdirSync(join(folder, "broker.db"));
    await expect(startTestBroker({ folder })).rejects.toMatchObject({ kind: "path_refused" });
    const env = { CLAUDEMESH_FAILPOINTS: "accept.befor_commit=crash" };
    await expect(startTestBroker({ env })).rejects.toThrow(FailpointSyntaxError);
  });

  test("on a store of a newer version is refused", async () => {
    const folder = makeTemporaryFolder();
    const broker = await startTestBroker({ folder });
    await broker.stop();
    const db = new DatabaseSync(broker.storePath);
    db.exec("INSERT INTO schema_migration (package, number, name, checksum) VALUES ('messages', 999, 'later', 'x')");
    db.close();
    await expect(startTestBroker({ folder })).rejects.toMatchObject({ kind: "schema_newer" });
  });
});

describe("a stop", () => {
  test("answers what is in flight, then closes its sockets with 1012", async () => {
    // The sends stand between their look-up and their transaction when the stop begins.
    const broker = await startTestBroker({ env: { CLAUDEMESH_FAILPOINTS: "accept.after_b0=delay:200" } });
    const alice = await createTestMesh(broker);
    const peer = await alice.connect("client");
    const destination = { kind: "dm", ref: alice.pubkey };
    const sends = Array.from({ length: 20 }, (_, id) =>
      peer.request("send", { client_message_id: `m${id}`, destination, envelope_version: "2", body: "x" }),
    );
    // The broker reads frames in order, so that it has read all of them when it answers this one.
    await peer.request("topic.list");
    const stopped = broker.stop();
    for (const send of sends) expect((await send).status).toBe(201);
    expect(await peer.closed).toEqual({ code: 1012, reason: "the broker is stopping" });
    await stopped;
    await expect(fetch(`${broker.url}/healthz`)).rejects.toThrow();
  });

  test("closes also sockets that have not said hello", async () => {
    const broker = await startTestBroker();
    const { socket, heard } = await upgradeRawSocket(broker.url);
    await heard("101 Switching Protocols");
    const stopped = broker.stop();
    await heard("stopping");
    socket.destroy();
    await stopped;
  });

  test("does not wait for a peer that never answers the close", async () => {
    const broker = await startTestBroker();
    const { socket, heard } = await upgradeRawSocket(broker.url);
    await heard("101 Switching Protocols");
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const stopped = broker.stop();
    await heard("stopping");
    const cut = once(socket, "close");
    vi.advanceTimersByTime(2_000);
    await cut;
    await stopped;
  });

  test("leaves one file without a log behind it", async () => {
    const broker = await startTestBroker();
    await createTestMesh(broker);
    await broker.stop();
    expect(statSync(`${broker.storePath}-wal`, { throwIfNoEntry: false })?.size ?? 0).toBe(0);
  });
});

describe("a restart", () => {
  test("finds members, tokens, topics, messages, fences and what is not delivered yet", async () => {
    const folder = makeTemporaryFolder();
    const first = await startTestBroker({ folder });
    const alice = await createTestMesh(first);
    const bob = await joinTestMesh(alice, "bob");
    await bob.token();
    await alice.call("POST", "/topics", { name: "news" });
    await bob.call("PUT", "/topics/news/subscription");
    const accepted = await alice.send("m1", bob);
    await alice.call("POST", "/messages", topicSend("m2", "news"));
    const fingerprint = "ab".repeat(32);
    await alice.call("POST", "/messages/by-client-id/m3/fence", { fingerprint });
    const receiver = await bob.connect();
    const pushed = [await receiver.nextPush(), await receiver.nextPush()];
    await receiver.ack(1);
    await first.stop();

    const second = await startTestBroker({ folder });
    for (const member of [alice, bob]) member.url = second.url;
    const again = await alice.send("m1", bob);
    expect(again).toMatchObject({ status: 200, body: { duplicate: true, history_id: 1 } });
    expect(again.body.broker_message_id).toBe(accepted.body.broker_message_id);
    expect((await alice.send("m3", bob)).body.error).toBe("fenced");
    const history = await bob.call("GET", "/history");
    expect(history.body.items).toEqual(pushed);
    const members = (await bob.call("GET", "/members")).body.items as { name: string }[];
    expect(members.map(({ name }) => name).sort()).toEqual(["alice", "bob"]);
    expect((await bob.call("GET", "/topics")).body.items).toEqual([
      { name: "news", post_policy: "members", subscribed: true },
    ]);
    expect((await (await bob.connect()).nextPush()).client_message_id).toBe("m2");
    expect(await alice.send("m4", bob)).toMatchObject({ status: 201, body: { history_id: 3 } });
  });
});

describe("a kill", () => {
  async function prepareStore(): Promise<{ folder: string; alice: TestMember; bob: TestMember }> {
    const folder = makeTemporaryFolder();
    const { broker, alice, bob } = await startTestPair({ folder });
    await alice.token();
    await broker.stop();
    return { folder, alice, bob };
  }

  /** Starts a broker process with a fault point, asks it what kills it, and waits until it is dead. */
  async function killBy(folder: string, failpoint: string, work: (url: string) => Promise<unknown>): Promise<void> {
    const script = fileURLToPath(new URL("./testing/broker-process.ts", import.meta.url));
    const child = spawn(process.execPath, [script, join(folder, "broker.db")], {
      env: { ...process.env, CLAUDEMESH_FAILPOINTS: failpoint, CLAUDEMESH_MESSAGE_RETENTION_DAYS: "1" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const ended = once(child, "exit");
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    await expect(work(line.toString().trim())).rejects.toThrow();
    expect(await ended).toEqual([null, "SIGKILL"]);
  }

  function storedMessages(folder: string): unknown[] {
    const db = new DatabaseSync(join(folder, "broker.db"));
    const rows = db.prepare("SELECT client_message_id, broker_message_id FROM client_message_dedupe").all();
    db.close();
    return rows.map((row) => ({ ...row }));
  }

  test("before the commit of an accept leaves nothing, and the retry is accepted", async () => {
    const { folder, alice, bob } = await prepareStore();
    await killBy(folder, "accept.before_commit@1=crash", (url) => {
      alice.url = url;
      return alice.send("m1", bob);
    });
    expect(storedMessages(folder)).toEqual([]);
    const broker = await startTestBroker({ folder });
    alice.url = broker.url;
    expect(await alice.send("m1", bob)).toMatchObject({ status: 201, body: { history_id: 1, duplicate: false } });
  });

  test("after the commit of an accept keeps it, and the retry is its duplicate", async () => {
    const { folder, alice, bob } = await prepareStore();
    await killBy(folder, "accept.after_commit@1=crash", (url) => {
      alice.url = url;
      return alice.send("m1", bob);
    });
    const [stored] = storedMessages(folder) as { broker_message_id: string }[];
    const broker = await startTestBroker({ folder });
    alice.url = broker.url;
    bob.url = broker.url;
    expect(await alice.send("m1", bob)).toMatchObject({
      status: 200,
      body: { duplicate: true, history_available: true, history_id: 1, broker_message_id: stored?.broker_message_id },
    });
    // No connection was woken, and still it is delivered.
    const pushed = await (await bob.connect()).nextPush();
    expect(pushed).toMatchObject({ client_message_id: "m1", broker_message_id: stored?.broker_message_id });
  });

  test("before the commit of a sweep leaves everything as it was, and the next one does it", async () => {
    const { folder, alice, bob } = await prepareStore();
    const first = await startTestBroker({ folder });
    alice.url = first.url;
    await alice.send("m1", bob);
    await first.stop();
    const db = new DatabaseSync(first.storePath);
    db.prepare("UPDATE message_history SET accepted_at = 1").run();
    const open = () => db.prepare("SELECT count(*) AS n FROM delivery_queue WHERE settled_at IS NULL").get()?.n;
    const token = readAdminToken(first);
    const sweep = (url: string) => callBroker(url, "POST", "/v1/admin/sweep", { token });
    await killBy(folder, "sweep.before_commit@1=crash", sweep);
    expect(open()).toBe(1);
    const broker = await startTestBroker({ folder, flags: { "message-retention-days": "1" } });
    alice.url = broker.url;
    expect((await alice.send("m1", bob)).body).toMatchObject({ duplicate: true, history_available: true });
    expect((await sweep(broker.url)).body).toMatchObject({ swept: { messages: 1, expired_deliveries: 1 } });
    expect(open()).toBe(0);
    db.close();
  });

  test("before the commit of a fence leaves the id free", async () => {
    const { folder, alice, bob } = await prepareStore();
    const fingerprint = "ab".repeat(32);
    await killBy(folder, "fence.before_commit@1=crash", (url) => {
      alice.url = url;
      return alice.call("POST", "/messages/by-client-id/m1/fence", { fingerprint });
    });
    const broker = await startTestBroker({ folder });
    alice.url = broker.url;
    const fate = await alice.call("GET", `/messages/by-client-id/m1?fingerprint=${fingerprint}`);
    expect(fate.body).toEqual({ fate: "none" });
    expect((await alice.send("m1", bob)).status).toBe(201);
  });
});

describe("a store that fails", () => {
  test("before the commit: unavailable and worth a retry, nothing consumed, nothing pushed", async () => {
    const broker = await startTestBroker({ env: { CLAUDEMESH_FAILPOINTS: "accept.before_commit@1=error" } });
    const alice = await createTestMesh(broker);
    const peer = await alice.connect();
    const failed = await alice.send("m1", alice);
    expect(failed).toMatchObject({ status: 503, body: { error: "storage_unavailable", retryable: true } });
    expect(await alice.send("m1", alice, "other")).toMatchObject({ status: 201, body: { history_id: 1 } });
    expect(await peer.nextPush()).toMatchObject({
      history_id: 1,
      body_base64: Buffer.from("other").toString("base64"),
    });
  });

  test("after the commit: unavailable, and the retry is a duplicate", async () => {
    const broker = await startTestBroker({ env: { CLAUDEMESH_FAILPOINTS: "accept.after_commit@1=error" } });
    const alice = await createTestMesh(broker);
    expect((await alice.send("m1", alice)).status).toBe(503);
    expect(await alice.send("m1", alice)).toMatchObject({ status: 200, body: { duplicate: true } });
  });

  test("a fault point for accepts leaves other work alone, also after it struck", async () => {
    const broker = await startTestBroker({ env: { CLAUDEMESH_FAILPOINTS: "accept.before_commit=error" } });
    const alice = await createTestMesh(broker);
    expect((await alice.send("m1", alice)).status).toBe(503);
    expect((await alice.call("POST", "/topics", { name: "news" })).status).toBe(201);
    const fingerprint = "ab".repeat(32);
    const fenced = await alice.call("POST", "/messages/by-client-id/m9/fence", { fingerprint });
    expect(fenced).toMatchObject({ status: 200, body: { fate: "fenced" } });
  });
});

function topicSend(clientMessageId: string, topic: string) {
  return { client_message_id: clientMessageId, destination: { kind: "topic", ref: topic }, body: "to all" };
}

/** A WebSocket without a library: it hears everything and never answers, not even a close. */
async function upgradeRawSocket(url: string) {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
  });
  socket.write(
    "GET /v1/connect HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  const heard = async (word: string) => {
    while (!text.includes(word)) await once(socket, "data");
  };
  return { socket, heard };
}

import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { settle } from "../testing/scripted-link.ts";
import { startTestDaemon, type TestDaemon, type TestHome, temporaryHome } from "../testing/test-daemon.ts";
import { backUpDaemon } from "./back-up.ts";

function open(path: string): Sqlite {
  const db = openSqlite({ path, mustExist: true });
  onTestFinished(() => {
    db.close();
  });
  return db;
}

const topicMessage = (historyId: number) => ({
  history_id: historyId,
  broker_message_id: `b-${historyId}`,
  client_message_id: `c-${historyId}`,
  destination: { kind: "topic" as const, ref: "general" },
  sender_pubkey: "ab".repeat(32),
  envelope_version: "1" as const,
  body: `message ${historyId}`,
  meta: null,
  priority: "next" as const,
  reply_to_id: null,
  accepted_at: 1,
});

async function receive(daemon: TestDaemon, historyId: number): Promise<void> {
  daemon.link.automatic.set("ack", () => ({ type: "answered", status: 200, body: {} }));
  daemon.link.options?.onPush({ type: "message", ...topicMessage(historyId) });
  await settle();
}

/** One row done, one refused, one pending. */
async function busyDaemon(at: TestHome): Promise<TestDaemon> {
  const daemon = await startTestDaemon({ at });
  daemon.link.automatic.set("members.list", () => ({ type: "answered", status: 200, body: { items: [] } }));
  daemon.link.goOnline();
  const answers: [string, number, object][] = [
    ["done", 201, { broker_message_id: "b", history_id: 1, duplicate: false }],
    ["refused", 404, { error: "destination_not_found", message: "no", retryable: false }],
  ];
  for (const [id, status, body] of answers) {
    await daemon.send({ to: "#general", message: "m", client_message_id: id });
    (await daemon.link.requested("send")).answer(status, body);
    await settle();
  }
  await receive(daemon, 1);
  daemon.link.goOffline();
  await settle();
  await daemon.send({ to: "#general", message: "m", client_message_id: "pending" });
  return daemon;
}

/** What an operator does to put a backup back. */
function restore(at: TestHome, folder: string): void {
  for (const name of ["outbox.db", "inbox.db"]) {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(join(at.paths.dir, name + suffix), { force: true });
    copyFileSync(join(folder, name), join(at.paths.dir, name));
  }
}

describe("a backup of a running daemon", () => {
  it("holds outbox, inbox and settings for the owner's eyes alone, and no keys", async () => {
    const at = temporaryHome();
    await busyDaemon(at);
    const folder = join(at.home, "backups", "monday");
    expect(await backUpDaemon(at.paths, { folder, withKeys: false }, 42)).toEqual({
      mesh: "acme",
      folder,
      taken_at: 42,
      member_pubkey: at.keys.ed25519.public_key,
      outbox_rows: 3,
      inbox_rows: 1,
      with_keys: false,
    });
    expect(readdirSync(folder).sort()).toEqual(["backup.json", "config.toml", "inbox.db", "outbox.db"]);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o777, name).toBe(0o600);
    expect(JSON.parse(readFileSync(join(folder, "backup.json"), "utf8"))).toMatchObject({ version: 1, mesh: "acme" });
    expect(readdirSync(join(at.home, "backups"))).toEqual(["monday"]);
  });

  it("holds the keys where they are asked for", async () => {
    const at = temporaryHome();
    await busyDaemon(at);
    const folder = join(at.home, "with-keys");
    await backUpDaemon(at.paths, { folder, withKeys: true });
    expect(readFileSync(join(folder, "keypair.json"), "utf8")).toBe(readFileSync(at.paths.keypair, "utf8"));
    expect(statSync(join(folder, "keypair.json")).mode & 0o777).toBe(0o600);
  });

  it("changes nothing in the daemon that it is taken of", async () => {
    const at = temporaryHome();
    const daemon = await busyDaemon(at);
    const rows = () => daemon.outboxDb().sql("SELECT * FROM outbox ORDER BY id").all();
    const before = rows();
    await backUpDaemon(at.paths, { folder: join(at.home, "b"), withKeys: false });
    expect(rows()).toEqual(before);
    expect((await daemon.send({ to: "#general", message: "m", client_message_id: "after" })).status).toBe(202);
  });

  it("is one moment of a daemon that goes on accepting", async () => {
    const at = temporaryHome();
    const daemon = await startTestDaemon({ at });
    let over = false;
    const answered: string[] = [];
    const sending = (async () => {
      for (let n = 0; !over; n++) {
        const id = String(n).padStart(6, "0");
        const { status } = await daemon.send({ to: "#general", message: "x".repeat(500), client_message_id: id });
        expect(status).toBe(202);
        answered.push(id);
      }
    })();
    while (answered.length < 20) await settle(1);
    const before = answered.length;
    await backUpDaemon(at.paths, { folder: join(at.home, "b"), withKeys: false });
    over = true;
    await sending;
    const copy = open(join(at.home, "b", "outbox.db"));
    const rows = copy.sql<{ client_message_id: string }>("SELECT client_message_id FROM outbox ORDER BY id").all();
    const ids = rows.map((row) => row.client_message_id);
    expect(ids.length).toBeGreaterThanOrEqual(before);
    expect(ids).toEqual(answered.slice(0, ids.length));
  });
});

describe("a backup that is put back", () => {
  it("sends again what was pending, asks before it would requeue it, and knows every id of its time", async () => {
    const at = temporaryHome();
    const first = await busyDaemon(at);
    const folder = join(at.home, "b");
    await backUpDaemon(at.paths, { folder, withKeys: false });
    await first.send({ to: "#general", message: "m", client_message_id: "since" });
    await first.daemon.stop();
    restore(at, folder);

    const daemon = await startTestDaemon({ at });
    const rowOf = async (id: string) => (await daemon.call("GET", `/v1/outbox/${id}`)).body.row;
    expect(await rowOf("pending")).toMatchObject({ status: "pending", fate: "unknown" });
    expect(await rowOf("refused")).toMatchObject({ status: "dead", fate: "refused" });
    expect(await rowOf("done")).toMatchObject({ status: "done", fate: "committed" });
    const again = (id: string) => daemon.send({ to: "#general", message: "m", client_message_id: id });
    expect((await again("done")).body).toMatchObject({ status: "done", duplicate: true });
    // Forgotten here; it goes out once more, and the broker answers that it has it.
    expect((await again("since")).body).toMatchObject({ status: "queued", duplicate: false });
    const requeue = await daemon.call("POST", "/v1/outbox/requeue", { json: { id: "pending" } });
    expect([requeue.status, requeue.body.error]).toEqual([409, "fate_unknown"]);
  });

  it("brings back from the broker's history what came since, and fires nothing for it", async () => {
    const at = temporaryHome();
    const first = await busyDaemon(at);
    await backUpDaemon(at.paths, { folder: join(at.home, "b"), withKeys: false });
    first.link.goOnline();
    await receive(first, 2);
    await first.daemon.stop();
    restore(at, join(at.home, "b"));

    const daemon = await startTestDaemon({ at });
    daemon.link.automatic.set("members.list", () => ({ type: "answered", status: 200, body: { items: [] } }));
    daemon.link.goOnline();
    const asked = await daemon.link.requested("history");
    expect(asked.input).toMatchObject({ after: 0 });
    asked.answer(200, { items: [topicMessage(1), topicMessage(2)], next_after: null });
    await settle();
    const { body } = await daemon.call("GET", "/v1/inbox");
    expect(body.items.map((item: { client_message_id: string }) => item.client_message_id)).toEqual(["c-1", "c-2"]);
  });
});

describe("a backup is refused", () => {
  const nothingLeft = (at: TestHome) =>
    expect(readdirSync(at.home).filter((name) => name.includes("partial"))).toEqual([]);

  it("into a folder that holds something, and over a file", async () => {
    const at = temporaryHome();
    await busyDaemon(at);
    mkdirSync(join(at.home, "b"));
    writeFileSync(join(at.home, "b", "precious"), "x");
    for (const folder of [join(at.home, "b"), join(at.home, "b", "precious")]) {
      await expect(backUpDaemon(at.paths, { folder, withKeys: false })).rejects.toMatchObject({
        reason: "target_in_the_way",
      });
    }
    mkdirSync(join(at.home, "empty"));
    chmodSync(join(at.home, "empty"), 0o755);
    await backUpDaemon(at.paths, { folder: join(at.home, "empty"), withKeys: false });
    expect(statSync(join(at.home, "empty")).mode & 0o777).toBe(0o700);
    nothingLeft(at);
  });

  it("where no daemon has run yet", async () => {
    const at = temporaryHome();
    const backup = backUpDaemon(at.paths, { folder: join(at.home, "b"), withKeys: false });
    await expect(backup).rejects.toMatchObject({ reason: "nothing_to_back_up" });
    nothingLeft(at);
  });

  it("of a damaged outbox, and names the command that saves what can be read", async () => {
    const at = temporaryHome();
    const daemon = await busyDaemon(at);
    await daemon.daemon.stop();
    const bytes = readFileSync(at.paths.outboxDb);
    bytes.fill(0x5a, 4_096 + 8, bytes.length - 16);
    writeFileSync(at.paths.outboxDb, bytes);
    const backup = backUpDaemon(at.paths, { folder: join(at.home, "b"), withKeys: false });
    await expect(backup).rejects.toMatchObject({
      reason: "outbox_corrupt",
      message: expect.stringContaining("claudemesh daemon recover"),
    });
    nothingLeft(at);
  });

  it("not because of a damaged inbox, which a daemon rebuilds", async () => {
    const at = temporaryHome();
    const daemon = await busyDaemon(at);
    await daemon.daemon.stop();
    writeFileSync(at.paths.inboxDb, "x".repeat(8_192));
    const folder = join(at.home, "b");
    expect(await backUpDaemon(at.paths, { folder, withKeys: false })).toMatchObject({ inbox_rows: null });
    expect(readdirSync(folder).sort()).toEqual(["backup.json", "config.toml", "outbox.db"]);
  });
});

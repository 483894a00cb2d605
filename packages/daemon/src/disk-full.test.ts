// A disk without room, or with errors, as the daemon's callers see it: 507, never a 2xx for what is not there.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { Agent } from "node:http";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { MeshError } from "@claudemesh/protocol/errors";
import { StorageError } from "@claudemesh/storage/errors";
import { describe, expect, it, onTestFinished } from "vitest";
import { readHostFacts } from "./files/this-host.ts";
import { toMeshError } from "./storage-failure.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { callHttp, startTestDaemon, type TestHome, temporaryHome } from "./testing/test-daemon.ts";
import { newRow, openTestStores } from "./testing/test-stores.ts";

const childPath = fileURLToPath(new URL("./testing/daemon-child.ts", import.meta.url));
const body = "x".repeat(30_000);

/** A daemon whose files may grow to 1 MiB each: beyond it every write fails, as on a full disk. */
async function startLimited(at: TestHome) {
  const limited = ["-c", 'ulimit -S -f 2048; exec "$@"', "sh", process.execPath, childPath, at.home, "offline"];
  const child = spawn("/bin/sh", limited, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit").then(([code, signal]) => ({ code, signal }));
  const agent = new Agent({ keepAlive: true });
  onTestFinished(async () => {
    agent.destroy();
    child.kill("SIGKILL");
    await ended;
  });
  await once(child.stdout, "data");
  const send = (id: string) => {
    const json = { to: "#general", message: `${id} ${body}`, client_message_id: id };
    return callHttp(agent, at.paths.sock, "POST", "/v1/send", { json });
  };
  const get = (path: string) => callHttp(agent, at.paths.sock, "GET", path, {});
  return { child, ended, send, get };
}

/** Sends until one is refused. */
async function fill(send: (id: string) => Promise<{ status: number; body: unknown }>) {
  const accepted: string[] = [];
  for (let n = 0; n < 500; n++) {
    const id = `order-${n}`;
    const { status, body: answer } = await send(id);
    if (status !== 202) return { accepted, refused: id, status, answer };
    accepted.push(id);
  }
  throw new Error("the disk was never full");
}

const hasPrlimit = spawnSync("prlimit", ["--version"]).status === 0;

describe("a daemon whose disk is full", () => {
  it("answers 507, goes on answering, and has every row that it accepted after a restart", async () => {
    const at = temporaryHome();
    const daemon = await startLimited(at);
    const { accepted, refused, status, answer } = await fill(daemon.send);
    expect(accepted.length).toBeGreaterThan(5);
    expect([status, answer]).toMatchObject([507, { error: "insufficient_storage", retryable: true }]);
    expect((await daemon.send(refused)).status).toBe(507);
    const retry = await daemon.send(accepted[0] ?? "");
    expect([retry.status, retry.body.duplicate]).toEqual([202, true]);
    expect((await daemon.get("/v1/health")).status).toBe(200);
    expect((await daemon.get("/v1/outbox?limit=1000")).body.items).toHaveLength(accepted.length);
    daemon.child.kill("SIGTERM");
    expect(await daemon.ended).toEqual({ code: 0, signal: null });

    const later = await startTestDaemon({ at });
    const { items } = (await later.call("GET", "/v1/outbox?limit=1000")).body;
    const ids = items.map((item: { client_message_id: string }) => item.client_message_id);
    expect(ids).toEqual(accepted);
    expect((await later.send({ to: "#general", message: "m", client_message_id: "after" })).status).toBe(202);
  });

  it.skipIf(!hasPrlimit)(
    "takes the same send as soon as there is room again, and a kill then loses nothing",
    async () => {
      const at = temporaryHome();
      const daemon = await startLimited(at);
      const { accepted, refused } = await fill(daemon.send);
      spawnSync("prlimit", ["--pid", String(daemon.child.pid), "--fsize=unlimited"]);
      expect((await daemon.send(refused)).status).toBe(202);
      daemon.child.kill("SIGKILL");
      await daemon.ended;
      expect(await rowsAfterRestart(at)).toEqual([...accepted, refused]);
    },
  );
});

async function rowsAfterRestart(at: TestHome): Promise<string[]> {
  const later = await startTestDaemon({ at });
  const { items } = (await later.call("GET", "/v1/outbox?limit=1000")).body;
  return items.map((item: { client_message_id: string }) => item.client_message_id);
}

describe("a daemon whose every nth commit fails", () => {
  const sends = 40;
  const everyNth = (point: string, n: number) =>
    Array.from({ length: sends }, (_, k) => `${point}@${(k + 1) * n}=error`).join(",");

  it.each([
    ["outbox.before_commit", 2],
    ["outbox.before_commit", 3],
    ["outbox.after_commit", 2],
    ["outbox.after_commit", 5],
  ] as const)("%s, n = %i: answers 507 then, and every 2xx is there after a restart", async (point, n) => {
    const at = temporaryHome();
    const daemon = await startTestDaemon({ at, env: { CLAUDEMESH_FAILPOINTS: everyNth(point, n) } });
    const statuses = new Map<string, number>();
    for (let k = 0; k < sends; k++) {
      const { status } = await daemon.send({ to: "#general", message: "m", client_message_id: `order-${k}` });
      statuses.set(`order-${k}`, status);
    }
    const withStatus = (wanted: number) => [...statuses].filter(([, status]) => status === wanted).map(([id]) => id);
    expect(withStatus(202).length + withStatus(507).length).toBe(sends);
    expect(withStatus(507)).toHaveLength(Math.floor(sends / n));
    // What was refused may be sent again at once; that it failed says nothing about its id.
    const [refused = ""] = withStatus(507);
    const again = await daemon.send({ to: "#general", message: "m", client_message_id: refused });
    expect([202, 507]).toContain(again.status);
    await daemon.daemon.stop();
    const rows = await rowsAfterRestart(at);
    expect(new Set(rows).size).toBe(rows.length);
    expect(rows).toEqual(expect.arrayContaining(withStatus(202)));
  });
});

describe("a send that finds no room in the database", () => {
  it("is refused, consumes nothing, and is accepted when there is room", async () => {
    const clock = new ManualClock();
    const stores = await openTestStores(clock);
    const pages = Number(stores.outboxDb.sql("PRAGMA page_count").get()?.page_count);
    stores.outboxDb.exec(`PRAGMA max_page_count = ${pages + 4}`);
    const row = newRow(stores, clock, { clientMessageId: "order-1", payload: new Uint8Array(60_000) });
    const failure = await stores.outbox.insert(row, "pending").catch((error: unknown) => error);
    expect(failure).toMatchObject({ kind: "disk_full" });
    expect(toMeshError(failure)).toMatchObject({ code: "insufficient_storage", status: 507 });
    expect(toMeshError(failure)).toMatchObject({
      message: expect.stringMatching(/disk is full.*Make room.*outbox prune/),
    });
    expect(stores.outbox.find("order-1")).toBeUndefined();
    const small = newRow(stores, clock, { clientMessageId: "order-2" });
    expect(await stores.outbox.insert(small, "pending")).toEqual({ type: "pending" });
    stores.outboxDb.exec("PRAGMA max_page_count = 1000000");
    expect(await stores.outbox.insert(row, "pending")).toEqual({ type: "pending" });
    expect(stores.outbox.find("order-1")).toBeDefined();
  });

  it("fails alone: neighbours that fit are accepted with it in one batch", async () => {
    const clock = new ManualClock();
    const stores = await openTestStores(clock);
    const pages = Number(stores.outboxDb.sql("PRAGMA page_count").get()?.page_count);
    stores.outboxDb.exec(`PRAGMA max_page_count = ${pages + 4}`);
    const sizes = [10, 60_000, 10];
    const ends = await Promise.allSettled(
      sizes.map((bytes, n) =>
        stores.outbox.insert(
          newRow(stores, clock, { clientMessageId: `m-${n}`, payload: new Uint8Array(bytes) }),
          "pending",
        ),
      ),
    );
    expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(stores.outbox.counts().pending).toBe(2);
  });
});

it("a start on a full disk says which disk, how much it needs, and what to do", async () => {
  const at = temporaryHome();
  const readHost = () => {
    throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
  };
  await expect(startTestDaemon({ at, readHost })).rejects.toMatchObject({
    reason: "disk_full",
    message: expect.stringMatching(
      /acme is full: \d+ KiB are free.*needs about 4096 KiB.*claudemesh daemon up --mesh acme/,
    ),
  });
});

describe("a read that the disk fails while a daemon starts", () => {
  const failures = [
    Object.assign(new Error("EIO: i/o error, read"), { code: "EIO" }),
    new StorageError("io", "disk I/O error"),
    new StorageError("corrupt", "database disk image is malformed"),
    new MeshError("storage_unavailable", undefined, {}, new StorageError("io", "disk I/O error")),
  ];

  it.each(failures)("costs no start where the next one succeeds: $message", async (failure) => {
    let failing = 2;
    const readHost = () => {
      if (failing-- > 0) throw failure;
      return readHostFacts();
    };
    const { call } = await startTestDaemon({ at: temporaryHome(), readHost });
    expect((await call("GET", "/v1/health")).status).toBe(200);
  });

  it.each(failures)("again and again refuses the start, and calls nothing damaged: $message", async (failure) => {
    const readHost = () => {
      throw failure;
    };
    await expect(startTestDaemon({ at: temporaryHome(), readHost })).rejects.toMatchObject({
      reason: "storage_unavailable",
      message: expect.stringMatching(/acme cannot be read: .*nothing was changed.*claudemesh daemon up --mesh acme/),
    });
  });
});

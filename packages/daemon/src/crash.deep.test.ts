import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, lstatSync, readdirSync } from "node:fs";
import { Agent } from "node:http";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { settle } from "./testing/scripted-link.ts";
import { callHttp, startTestDaemon, type TestHome, temporaryHome } from "./testing/test-daemon.ts";

const childPath = fileURLToPath(new URL("./testing/daemon-child.ts", import.meta.url));

type Child = {
  readonly process: ChildProcess;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  readonly send: (clientMessageId: string) => Promise<number | "no answer">;
};

async function startChild(at: TestHome, scenario: string, failpoints = "", umask = "77"): Promise<Child> {
  const child = spawn(process.execPath, [childPath, at.home, scenario, umask], {
    env: { ...process.env, CLAUDEMESH_FAILPOINTS: failpoints },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit").then(([code, signal]) => ({ code, signal }));
  const agent = new Agent({ keepAlive: true });
  onTestFinished(async () => {
    agent.destroy();
    child.kill("SIGKILL");
    await ended;
  });
  await once(child.stdout, "data");
  const send = async (clientMessageId: string) => {
    try {
      const json = { to: "#general", message: `body of ${clientMessageId}`, client_message_id: clientMessageId };
      return (await callHttp(agent, at.paths.sock, "POST", "/v1/send", { json })).status;
    } catch {
      return "no answer";
    }
  };
  return { process: child, ended, send };
}

describe("a daemon that is killed", () => {
  it("before the commit has accepted nothing: the retry is the first", async () => {
    const at = temporaryHome();
    const child = await startChild(at, "offline", "outbox.before_commit=crash");
    expect(await child.send("order-1")).toBe("no answer");
    expect(await child.ended).toEqual({ code: null, signal: "SIGKILL" });
    const daemon = await startTestDaemon({ at });
    expect(daemon.rowCount()).toBe(0);
    const retry = await daemon.send({ to: "#general", message: "body of order-1", client_message_id: "order-1" });
    expect([retry.status, retry.body.duplicate]).toEqual([202, false]);
  });

  it("after the commit, before the answer, has the row: the retry is a duplicate", async () => {
    const at = temporaryHome();
    const child = await startChild(at, "offline", "outbox.after_commit=crash");
    expect(await child.send("order-1")).toBe("no answer");
    expect(await child.ended).toEqual({ code: null, signal: "SIGKILL" });
    const daemon = await startTestDaemon({ at });
    expect(daemon.rowCount()).toBe(1);
    const retry = await daemon.send({ to: "#general", message: "body of order-1", client_message_id: "order-1" });
    expect([retry.status, retry.body.duplicate]).toEqual([202, true]);
  });

  it("after the frame was written does not know the row's fate, and tries it again", async () => {
    const at = temporaryHome();
    const child = await startChild(at, "online", "drain.after_write=crash");
    expect(await child.send("order-1")).toSatisfy((status) => status === 202 || status === "no answer");
    expect(await child.ended).toEqual({ code: null, signal: "SIGKILL" });
    const daemon = await startTestDaemon({ at });
    const { body } = await daemon.call("GET", "/v1/outbox/order-1");
    expect(body.row).toMatchObject({ status: "pending", attempts: 1, unanswered: 1, fate: "unknown" });
    daemon.link.goOnline();
    const again = await daemon.link.requested("send");
    expect(again.input).toMatchObject({ client_message_id: "order-1", body: "body of order-1" });
    again.answer(200, { broker_message_id: "b", history_id: 1, duplicate: true, history_available: true });
    await settle();
    expect((await daemon.call("GET", "/v1/outbox/order-1")).body.row).toMatchObject({
      status: "done",
      fate: "committed",
    });
  });

  it("after a message was stored, before the ack, has it once when it comes again", async () => {
    const at = temporaryHome();
    const child = await startChild(at, "push", "inbox.after_commit=crash");
    expect(await child.ended).toEqual({ code: null, signal: "SIGKILL" });
    const inbox = openSqlite({ path: at.paths.inboxDb, mustExist: true });
    onTestFinished(() => {
      inbox.close();
    });
    const rows = () => inbox.sql("SELECT client_message_id FROM inbox").all();
    expect(rows()).toEqual([{ client_message_id: "c-1" }]);
    const second = await startChild(at, "push");
    second.process.kill("SIGTERM");
    await second.ended;
    expect(rows()).toEqual([{ client_message_id: "c-1" }]);
  });

  it("under load loses nothing that was answered 202, and doubles nothing", async () => {
    const at = temporaryHome();
    const accepted = new Set<string>();
    for (let round = 0; round < 3; round++) {
      const child = await startChild(at, "online");
      let sent = 0;
      const killAfter = 40 + round * 25;
      await Promise.all(
        Array.from({ length: 8 }, async (_, caller) => {
          for (let index = 0; ; index++) {
            const id = `${round}-${caller}-${index}`;
            const status = await child.send(id);
            if (status !== 202) return;
            accepted.add(id);
            if (++sent === killAfter) child.process.kill("SIGKILL");
          }
        }),
      );
      await child.ended;
    }
    const daemon = await startTestDaemon({ at });
    const rows = daemon.outboxDb().sql<{ client_message_id: string }>("SELECT client_message_id FROM outbox").all();
    const stored = rows.map(({ client_message_id }) => client_message_id);
    expect(accepted.size).toBeGreaterThanOrEqual(40 + 65 + 90);
    expect(new Set(stored).size).toBe(stored.length);
    for (const id of accepted) expect(stored).toContain(id);
  });
});

describe("a daemon that is started under an open umask", () => {
  it("makes nothing that others can read", async () => {
    const at = temporaryHome();
    const child = await startChild(at, "online", "", "0");
    expect(await child.send("order-1")).toBe(202);
    const modes = Object.fromEntries(
      readdirSync(at.paths.dir).map((name) => [name, (lstatSync(join(at.paths.dir, name)).mode & 0o777).toString(8)]),
    );
    for (const name of ["sock", "local_token", "http.port", "pid", "schema_version", "daemon.log", "lock.db"]) {
      expect(modes, name).toHaveProperty([name], "600");
    }
    expect(Object.keys(modes)).toEqual(
      expect.arrayContaining(["outbox.db", "outbox.db-wal", "inbox.db", "inbox.db-wal"]),
    );
    expect(new Set(Object.values(modes))).toEqual(new Set(["600"]));
    expect(lstatSync(at.paths.dir).mode & 0o777).toBe(0o700);
    child.process.kill("SIGTERM");
    expect(await child.ended).toEqual({ code: 0, signal: null });
    expect(readdirSync(at.paths.dir)).not.toContain("sock");
  });

  it("narrows what was left open", async () => {
    const at = temporaryHome();
    const first = await startTestDaemon({ at });
    await first.send({ to: "#general", message: "m" });
    await first.daemon.stop();
    chmodSync(at.paths.outboxDb, 0o644);
    chmodSync(at.paths.log, 0o644);
    await startTestDaemon({ at });
    expect(lstatSync(at.paths.outboxDb).mode & 0o777).toBe(0o600);
    expect(lstatSync(at.paths.log).mode & 0o777).toBe(0o600);
  });
});

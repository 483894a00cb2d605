import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { startDaemon } from "./start.ts";
import { inboxMigrations, outboxMigrations } from "./stores/sqlite/open-databases.ts";
import { settle, testFeatures } from "./testing/scripted-link.ts";
import { startTestDaemon, type TestHome, temporaryHome } from "./testing/test-daemon.ts";

const accepted = { broker_message_id: "b-1", client_message_id: "x", history_id: 7, duplicate: false };

function logOf(at: TestHome): { event: string; level: number; [field: string]: unknown }[] {
  return readFileSync(at.paths.log, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

describe("a daemon", () => {
  it("takes a send, sends it to the broker as soon as that is there, and answers the retry from the outbox", async () => {
    const daemon = await startTestDaemon();
    const request = { to: "#general", message: "a very secret text", client_message_id: "order-1" };
    expect((await daemon.send(request)).status).toBe(202);
    daemon.link.goOnline();
    const frame = await daemon.link.requested("send");
    expect((await daemon.send(request)).body.status).toBe("inflight");
    frame.answer(201, accepted);
    await settle();
    const retry = await daemon.send(request);
    expect([retry.status, retry.body]).toMatchObject([200, { broker_message_id: "b-1", history_id: 7 }]);
    expect(readFileSync(daemon.paths.log, "utf8")).not.toContain("secret text");
  });

  it("sends what it sealed byte for byte, however often it has to try", async () => {
    const daemon = await startTestDaemon({ overrides: { outbox: { backoff_min_ms: 1, backoff_max_ms: 1 } } });
    daemon.link.goOnline();
    await daemon.send({ to: "@self", message: "secret", client_message_id: "order-1" });
    const first = await daemon.link.requested("send");
    first.end({ type: "timed_out" });
    const second = await daemon.link.requested("send");
    expect(second.input).toEqual(first.input);
    expect(second.input).toMatchObject({ envelope_version: "3", body_base64: expect.any(String) });
  });

  it("keeps what the broker announced for the time when it is away", async () => {
    const at = temporaryHome();
    const first = await startTestDaemon({ at });
    first.link.goOnline({ ...testFeatures, inlineBytes: 1_024 });
    await settle();
    await first.daemon.stop();
    const second = await startTestDaemon({ at });
    const answer = await second.send({ to: "#general", message: "x".repeat(1_025) });
    expect([answer.status, answer.body.limit_bytes]).toEqual([413, 1_024]);
  });

  it("leaves its rows for the next start, with open tries counted as unanswered", async () => {
    const at = temporaryHome();
    const first = await startTestDaemon({ at });
    first.link.goOnline();
    await first.send({ to: "#general", message: "m", client_message_id: "order-1" });
    await first.link.requested("send");
    await first.send({ to: "@self", message: "m", client_message_id: "order-2" });
    await first.daemon.stop();
    expect(await first.daemon.stopped).toEqual({ reason: "stopped", exitCode: 0, message: "stopped as asked" });
    const second = await startTestDaemon({ at });
    const { body } = await second.call("GET", "/v1/outbox");
    expect(body.items).toMatchObject([
      { client_message_id: "order-1", status: "pending", attempts: 1, fate: "unknown" },
      { client_message_id: "order-2", status: "pending", fate: "unknown" },
    ]);
  });

  it("answers what is open when it stops, takes nothing more, and can be stopped twice", async () => {
    const daemon = await startTestDaemon();
    const open = daemon.send({ to: "@ghost", message: "m" });
    while ((await daemon.call("GET", "/v1/version")).status !== 200);
    const stopping = Promise.all([daemon.daemon.stop(), daemon.daemon.stop()]);
    daemon.link.automatic.set("members.list", () => ({ type: "answered", status: 200, body: { items: [] } }));
    daemon.link.goOnline();
    expect((await open).status).toBe(404);
    await stopping;
    await expect(daemon.call("GET", "/v1/version")).rejects.toThrow();
    expect(() => statSync(daemon.paths.sock)).toThrow(/ENOENT/);
    expect(() => statSync(daemon.paths.pid)).toThrow(/ENOENT/);
  });

  it("rebuilds an inbox that was damaged from the broker's history, and goes on receiving", async () => {
    const at = temporaryHome();
    await (await startTestDaemon({ at })).daemon.stop();
    writeFileSync(at.paths.inboxDb, "x".repeat(9_000));
    const daemon = await startTestDaemon({ at });
    expect(logOf(at).map(({ event }) => event)).toContain("inbox_corruption_recovered");
    daemon.link.automatic.set("members.list", () => ({ type: "answered", status: 200, body: { items: [] } }));
    daemon.link.goOnline();
    const item = {
      history_id: 4,
      broker_message_id: "b-4",
      client_message_id: "c-4",
      destination: { kind: "topic", ref: "general" },
      sender_pubkey: "ab".repeat(32),
      envelope_version: "1",
      body: "back again",
      meta: null,
      priority: "next",
      reply_to_id: null,
      accepted_at: 1,
    };
    (await daemon.link.requested("history")).answer(200, { items: [item], next_after: null });
    await settle();
    const { body } = await daemon.call("GET", "/v1/inbox");
    expect(body.items).toMatchObject([{ client_message_id: "c-4", body: "back again" }]);
    expect((await daemon.call("GET", "/v1/health")).body.inbox.rebuilding).toBe(false);
  });
});

describe("a daemon ends by itself", () => {
  it.each([
    "replaced_by_newer",
    "older_connection_kept",
    "feature_unavailable",
    "feature_param_invalid",
    "feature_param_below_floor",
  ] as const)("with exit code 1 when its link stops with %s", async (reason) => {
    const daemon = await startTestDaemon();
    const failure = { ok: false, code: "feature_unavailable", feature: "max_payload", detail: "none" } as const;
    const negotiation = { failure, announced: { max_payload: { version: 9 } } };
    daemon.link.become({ state: "stopped", reason, detail: "the broker said so", negotiation });
    expect(await daemon.daemon.stopped).toMatchObject({
      reason,
      exitCode: 1,
      // What happened, and then a sentence about what to do.
      message: expect.stringMatching(new RegExp(`^${reason}: the broker said so\\. [A-Z].*\\.$`)),
    });
    const line = logOf(daemon).find(({ event }) => event === "link_stopped");
    expect(line).toMatchObject({ level: 40, reason, negotiation });
    expect(() => statSync(daemon.paths.sock)).toThrow(/ENOENT/);
  });

  it("when a hello brings a window that the configured age leaves, and then refuses to start", async () => {
    const at = temporaryHome();
    const overrides = { outbox: { max_age_hours_override: 145 } };
    const daemon = await startTestDaemon({ at, overrides });
    daemon.link.goOnline({ ...testFeatures, dedupe: { mode: "retention_scoped", dedupe_retention_days: 7 } });
    const end = await daemon.daemon.stopped;
    expect(end).toMatchObject({ reason: "outbox_max_age_above_dedupe_window", exitCode: 1 });
    await expect(startTestDaemon({ at, overrides })).rejects.toMatchObject({
      reason: "outbox_max_age_above_dedupe_window",
      body: { error: "outbox_max_age_above_dedupe_window" },
    });
    await startTestDaemon({ at, overrides: { outbox: { max_age_hours_override: 144 } } });
  });

  it("never because the broker refuses the member, whose sends it refuses from then on", async () => {
    const daemon = await startTestDaemon();
    daemon.link.become({ state: "offline", reason: "member_revoked", detail: "x" });
    expect((await daemon.send({ to: "#general", message: "m" })).body.error).toBe("membership_ended");
  });

  it("never because the broker is away", async () => {
    const daemon = await startTestDaemon();
    for (const reason of ["unreachable", "unauthorized", "broker_stopping"] as const) {
      daemon.link.become({ state: "offline", reason, detail: "x" });
    }
    expect((await daemon.send({ to: "#general", message: "m" })).status).toBe(202);
    const { body } = await daemon.call("GET", "/v1/health");
    expect(body.broker).toEqual({ state: "offline", reason: "broker_stopping", detail: "x" });
  });
});

describe("a daemon refuses to start", () => {
  it("where another one runs on the same folder, and leaves that one alone", async () => {
    const daemon = await startTestDaemon();
    await expect(startTestDaemon({ at: daemon })).rejects.toMatchObject({
      reason: "already_running",
      message: expect.stringContaining(daemon.paths.dir),
    });
    expect((await daemon.call("GET", "/v1/version")).status).toBe(200);
  });

  it("where something that is no socket stands where the socket goes, and starts over a stale socket", async () => {
    const at = temporaryHome();
    writeFileSync(at.paths.sock, "precious");
    await expect(startTestDaemon({ at })).rejects.toMatchObject({ reason: "cannot_listen" });
    expect(readFileSync(at.paths.sock, "utf8")).toBe("precious");
    rmSync(at.paths.sock);
    const stale = createServer().listen(at.paths.sock);
    await new Promise((resolve) => stale.once("listening", resolve));
    // A server that goes away without closing leaves its socket file behind; unref'ed, this one is as good as gone.
    stale.unref();
    const daemon = await startTestDaemon({ at });
    expect((await daemon.call("GET", "/v1/version")).status).toBe(200);
    stale.close();
  });

  it("on a damaged outbox, gives the lock back, and says what to do", async () => {
    const at = temporaryHome();
    await (await startTestDaemon({ at })).daemon.stop();
    const sound = readFileSync(at.paths.outboxDb);
    writeFileSync(at.paths.outboxDb, "x".repeat(9_000));
    await expect(startTestDaemon({ at })).rejects.toMatchObject({ reason: "outbox_corrupt" });
    expect(readFileSync(at.paths.outboxDb, "utf8")).toBe("x".repeat(9_000));
    writeFileSync(at.paths.outboxDb, sound);
    await startTestDaemon({ at });
  });

  it.each(["999", '{"outbox":999,"inbox":1}', '{"outbox":1,"inbox":999}'])(
    "in a folder whose schema_version is of a newer build: %s",
    async (newer) => {
      const at = temporaryHome();
      await (await startTestDaemon({ at })).daemon.stop();
      writeFileSync(at.paths.schemaVersion, newer);
      await expect(startTestDaemon({ at })).rejects.toMatchObject({ reason: "schema_newer" });
      expect(readFileSync(at.paths.schemaVersion, "utf8")).toBe(newer);
      writeFileSync(at.paths.schemaVersion, "no number");
      await startTestDaemon({ at });
    },
  );

  it("without keys, without a mesh, or with keys that others can read", async () => {
    const at = temporaryHome();
    const start = (home: string) => startDaemon({ home, mesh: "acme", env: {} });
    rmSync(at.paths.keypair);
    await expect(start(at.home)).rejects.toMatchObject({ reason: "files_unusable" });
    rmSync(at.paths.config);
    await expect(start(at.home)).rejects.toMatchObject({ reason: "files_unusable" });
  });

  it("with a configuration or fault points that are unknown", async () => {
    const at = temporaryHome();
    await expect(startTestDaemon({ at, env: { CLAUDEMESH_FAILPOINTS: "outbox.nowhere=crash" } })).rejects.toMatchObject(
      {
        reason: "config_invalid",
        message: expect.stringContaining("outbox.nowhere"),
      },
    );
    writeFileSync(at.paths.config, `${readFileSync(at.paths.config, "utf8")}\n[outbox]\nmax_byte = 5\n`);
    await expect(startTestDaemon({ at })).rejects.toMatchObject({
      reason: "config_invalid",
      message: expect.stringContaining("outbox.max_byte"),
    });
  });
});

describe("what surrounds a daemon", () => {
  it("fault points are logged loudly", async () => {
    const daemon = await startTestDaemon({ env: { CLAUDEMESH_FAILPOINTS: "outbox.before_commit@2=error" } });
    const line = logOf(daemon).find(({ event }) => event === "failpoints_active");
    expect(line).toMatchObject({ level: 50, msg: expect.stringContaining("FAULT POINTS ARE SET") });
    expect((await daemon.send({ to: "#general", message: "m" })).status).toBe(202);
    const refused = await daemon.send({ to: "#general", message: "m" });
    expect([refused.status, refused.body]).toMatchObject([507, { error: "insufficient_storage", retryable: true }]);
    expect(daemon.rowCount()).toBe(1);
  });

  it("a container keeps the API on its socket, unless its settings say otherwise", async () => {
    const inside = await startTestDaemon({ env: { container: "docker" } });
    expect(inside.daemon.httpPort).toBeUndefined();
    const configured = await startTestDaemon({ env: { container: "docker", CLAUDEMESH_IPC_TCP_ENABLED: "true" } });
    expect(configured.daemon.httpPort).toBeGreaterThan(0);
  });

  it("small files say which process, which port and which schema", async () => {
    const daemon = await startTestDaemon({ overrides: { ipc: { tcp_enabled: true } } });
    expect(Number(readFileSync(daemon.paths.pid, "utf8"))).toBe(process.pid);
    expect(Number(readFileSync(daemon.paths.httpPort, "utf8"))).toBe(daemon.daemon.httpPort);
    expect(JSON.parse(readFileSync(daemon.paths.schemaVersion, "utf8"))).toEqual({
      outbox: outboxMigrations().length,
      inbox: inboxMigrations().length,
    });
  });

  it("both databases can be read by a second process while it runs", async () => {
    const daemon = await startTestDaemon();
    await daemon.send({ to: "#general", message: "m" });
    expect(daemon.rowCount()).toBe(1);
  });
});

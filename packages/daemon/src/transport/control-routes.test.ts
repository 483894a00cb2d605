import { mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { request } from "node:http";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { deliver, delivery } from "../testing/deliveries.ts";
import { EventReader } from "../testing/event-reader.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { settle } from "../testing/scripted-link.ts";
import { startTestDaemon, type TestDaemon } from "../testing/test-daemon.ts";
import { routes } from "./routes.ts";

describe("GET /openapi.json", () => {
  it("lists every route with what it takes, and no other", async () => {
    const daemon = await startTestDaemon({ version: "9.9.9" });
    const { body } = await daemon.call("GET", "/openapi.json");
    expect(body).toMatchObject({ openapi: "3.1.0", info: { version: "9.9.9" } });
    const listed = Object.entries(body.paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`),
    );
    expect(listed.sort()).toEqual(routes.map(({ method, url }) => `${method} ${url}`).sort());
    for (const [path, methods] of Object.entries(body.paths as Record<string, Record<string, Described>>)) {
      for (const [method, described] of Object.entries(methods)) {
        const where = `${method} ${path}`;
        expect(described.summary, where).toMatch(/\S/);
        const named = described.parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name);
        expect(named, where).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
        await expectServed(daemon, method.toUpperCase(), path);
      }
    }
    expect(body.paths["/v1/send"].post.requestBody.content["application/json"].schema.required).toEqual(["to"]);
    expect(body.paths["/v1/inbox/search"].get.parameters[0]).toMatchObject({ name: "q", in: "query", required: true });
  });
});

type Described = { readonly summary: string; readonly parameters: { readonly name: string; readonly in: string }[] };

/** Whatever the server says to an unknown parameter, it says it as the route that is described. */
async function expectServed(daemon: TestDaemon, method: string, path: string): Promise<void> {
  const answer = await daemon.call(method, `${path.replaceAll(/\{\w+\}/g, "x")}?no_such_parameter=1`);
  expect(answer.body.error, `${method} ${path}`).toMatch(/^(unknown_field|invalid_request)$/);
}

describe("GET /v1/compat", () => {
  it("shows what was negotiated, also while the broker is away, and nothing before the first hello", async () => {
    const daemon = await startTestDaemon({ version: "9.9.9" });
    const compat = async () => (await daemon.call("GET", "/v1/compat")).body;
    expect(await compat()).toEqual({
      daemon_version: "9.9.9",
      protocol: 2,
      current: false,
      negotiated: null,
      limits: { inline_bytes: 65_536, max_age_hours: 144 },
    });
    daemon.link.goOnline({
      dedupe: { mode: "retention_scoped", dedupe_retention_days: 10 },
      inlineBytes: 2_048,
      connectionPolicy: "prefer_oldest",
    });
    await settle();
    const online = await compat();
    expect(online).toMatchObject({ current: true, limits: { inline_bytes: 2_048, max_age_hours: 216 } });
    expect(online.negotiated).toMatchObject({
      client_message_id_dedupe: { version: 2, mode: "retention_scoped", dedupe_retention_days: 10 },
      concurrent_connection_policy: { version: 1, default_policy: "prefer_oldest" },
      max_payload: { version: 1, inline_bytes: 2_048 },
    });
    daemon.link.goOffline();
    expect(await compat()).toEqual({ ...online, current: false });
  });
});

describe("GET /v1/metrics", () => {
  it("counts sends, tries and deliveries by what became of them, and never names an id", async () => {
    const daemon = await startTestDaemon();
    const metrics = async () => {
      const text = await readText(daemon, "/v1/metrics");
      const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
      return { text, values: Object.fromEntries(lines.map((line) => line.split(" "))) as Record<string, string> };
    };
    expect((await metrics()).values).toMatchObject({
      cm_daemon_broker_connected: "0",
      'cm_daemon_sends_total{outcome="accepted"}': "0",
    });
    const send = (json: object) => daemon.send({ to: "#general", message: "m", ...json });
    await send({ client_message_id: "secret-1" });
    await send({ client_message_id: "secret-1" });
    const many = [{ message: "other" }, { to: "nonsense" }].map((each) => ({
      ...{ to: "#general", message: "m", client_message_id: "secret-1" },
      ...each,
    }));
    await daemon.call("POST", "/v1/send/many", { json: { sends: many } });
    daemon.link.goOnline();
    (await daemon.link.requested("send")).answer(201, { broker_message_id: "b", history_id: 1 });
    await send({ client_message_id: "secret-2" });
    (await daemon.link.requested("send")).answer(404, { error: "not_found", message: "", retryable: false });
    const { body: _, ...sealed } = delivery(2, { envelope_version: "2", body_base64: "AAEC" });
    const reused = delivery(3, { client_message_id: delivery(1).client_message_id });
    deliver(daemon.link, delivery(1), delivery(1), sealed, reused);
    const reader = await EventReader.open(daemon, { lastEventId: "0".repeat(26) });
    await reader.untilCount("message", 3);
    await settle();
    const { text, values } = await metrics();
    expect(values).toMatchObject({
      'cm_daemon_sends_total{outcome="accepted"}': "2",
      'cm_daemon_sends_total{outcome="duplicate"}': "1",
      'cm_daemon_sends_total{outcome="conflict"}': "1",
      'cm_daemon_sends_total{outcome="refused"}': "1",
      'cm_daemon_drain_tries_total{outcome="done"}': "1",
      'cm_daemon_drain_tries_total{outcome="dead"}': "1",
      'cm_daemon_drain_tries_total{outcome="retry"}': "0",
      'cm_daemon_inbox_deliveries_total{outcome="received"}': "3",
      'cm_daemon_inbox_deliveries_total{outcome="duplicate"}': "1",
      'cm_daemon_inbox_unreadable_total{reason="not_opened"}': "1",
      'cm_daemon_inbox_unreadable_total{reason="relabelled"}': "0",
      cm_daemon_inbox_client_id_reused_total: "1",
      'cm_daemon_outbox_rows{status="pending"}': "0",
      'cm_daemon_outbox_rows{status="dead"}': "1",
      cm_daemon_broker_connected: "1",
      cm_daemon_event_streams: "1",
    });
    expect(Number(values.cm_daemon_storage_used_ratio)).toBeGreaterThan(0);
    expect(text).not.toMatch(/secret|message-1|[0-9A-HJKMNP-TV-Z]{26}/);
  });

  it("counts a message that is sent again though the broker may have forgotten that it had it", async () => {
    const daemon = await startTestDaemon();
    const counted = async () =>
      (await readText(daemon, "/v1/metrics")).match(/^cm_daemon_retry_after_dedupe_expired_total (\d+)$/m)?.[1];
    await daemon.send({ to: "#general", message: "m", client_message_id: "old-1" });
    const db = new DatabaseSync(daemon.paths.outboxDb);
    db.exec("UPDATE outbox SET status = 'dead', attempts = 1, unanswered = 1, enqueued_at = 1");
    db.close();
    expect(await counted()).toBe("0");
    const json = { id: "old-1", accept_duplicate: true };
    expect((await daemon.call("POST", "/v1/outbox/requeue", { json })).status).toBe(200);
    expect(await counted()).toBe("1");
  });
});

describe("POST /v1/token/rotate", () => {
  async function startOnLoopback() {
    const clock = new ManualClock();
    const daemon = await startTestDaemon({ clock, overrides: { ipc: { tcp_enabled: true } } });
    const port = Number(readFileSync(daemon.paths.httpPort, "utf8"));
    const readToken = () => readFileSync(daemon.paths.localToken, "utf8").trim();
    const statusWith = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` };
      return (await daemon.call("GET", "/v1/version", { port, headers })).status;
    };
    const rotate = () => daemon.call("POST", "/v1/token/rotate", { json: {} });
    return { ...daemon, clock, port, readToken, statusWith, rotate };
  }

  it("puts a new token into the file, and the old one is good for another minute", async () => {
    const { clock, paths, readToken, statusWith, rotate } = await startOnLoopback();
    const old = readToken();
    const answer = await rotate();
    expect(answer).toMatchObject({
      status: 200,
      body: { rotated_at: clock.nowMs(), old_token_valid_until: clock.nowMs() + 60_000 },
    });
    const fresh = readToken();
    expect(fresh).toMatch(/^[0-9a-f]{64}$/);
    expect(fresh).not.toBe(old);
    expect(JSON.stringify(answer.body)).not.toContain(fresh);
    expect(statSync(paths.localToken).mode & 0o777).toBe(0o600);
    expect([await statusWith(old), await statusWith(fresh)]).toEqual([200, 200]);
    clock.advance(59_999);
    expect([await statusWith(old), await statusWith(fresh)]).toEqual([200, 200]);
    clock.advance(1);
    expect([await statusWith(old), await statusWith(fresh)]).toEqual([401, 200]);
  });

  it("gives each replaced token its own minute, and none of them is suffered in a query", async () => {
    const { clock, call, port, readToken, statusWith, rotate } = await startOnLoopback();
    const first = readToken();
    await rotate();
    const second = readToken();
    clock.advance(30_000);
    await rotate();
    const third = readToken();
    for (const token of [first, second, third]) {
      expect((await call("GET", `/v1/inbox?cursor=${token}`, { port })).body.error).toBe("token_in_query");
    }
    clock.advance(30_000);
    expect([await statusWith(first), await statusWith(second), await statusWith(third)]).toEqual([401, 200, 200]);
    clock.advance(30_000);
    expect([await statusWith(second), await statusWith(third)]).toEqual([401, 200]);
  });

  it("is refused over TCP, even to who has the token", async () => {
    const { call, port, readToken } = await startOnLoopback();
    const token = readToken();
    const headers = { authorization: `Bearer ${token}` };
    const answer = await call("POST", "/v1/token/rotate", { port, headers, json: {} });
    expect([answer.status, answer.body.error]).toEqual([403, "forbidden"]);
    expect((await call("POST", "/v1/token/rotate", { port, json: {} })).status).toBe(401);
    expect(readToken()).toBe(token);
  });

  it("changes nothing where the file cannot be replaced", async () => {
    const { paths, readToken, statusWith, rotate } = await startOnLoopback();
    const token = readToken();
    rmSync(paths.localToken);
    mkdirSync(paths.localToken);
    expect((await rotate()).body.error).toBe("storage_unavailable");
    expect(await statusWith(token)).toBe(200);
  });
});

async function readText(daemon: TestDaemon, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath: daemon.paths.sock, path }, (response) => {
      expect(response.headers["content-type"]).toMatch(/^text\/plain/);
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve(text));
    });
    call.on("error", reject);
    call.end();
  });
}

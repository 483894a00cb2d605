import { readFileSync, statSync } from "node:fs";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { type CallOptions, startTestDaemon, type TestDaemon } from "../testing/test-daemon.ts";

async function startOnLoopback(ipc: object = {}): Promise<
  TestDaemon & {
    readonly port: number;
    readonly token: string;
    readonly tcp: (method: string, path: string, options?: CallOptions) => ReturnType<TestDaemon["call"]>;
    readonly bearer: Record<string, string>;
  }
> {
  const daemon = await startTestDaemon({ overrides: { ipc: { tcp_enabled: true, ...ipc } } });
  const port = Number(readFileSync(daemon.paths.httpPort, "utf8"));
  const token = readFileSync(daemon.paths.localToken, "utf8").trim();
  expect(daemon.daemon.httpPort).toBe(port);
  const tcp = (method: string, path: string, options: CallOptions = {}) =>
    daemon.call(method, path, { ...options, port });
  return { ...daemon, port, token, tcp, bearer: { authorization: `Bearer ${token}` } };
}

function securityEvents(daemon: TestDaemon): string {
  return readFileSync(daemon.paths.log, "utf8")
    .split("\n")
    .filter((line) => line.includes('"event":"security"'))
    .join("\n");
}

describe("the loopback API", () => {
  it("takes the local token on every route, and the Unix socket takes none", async () => {
    const { tcp, call, bearer } = await startOnLoopback();
    for (const [method, path] of [
      ["POST", "/v1/send"],
      ["GET", "/v1/inbox"],
      ["GET", "/v1/outbox"],
      ["GET", "/v1/outbox/x"],
      ["GET", "/v1/health"],
      ["GET", "/v1/version"],
      ["GET", "/v1/no-such-route"],
    ] as const) {
      expect((await tcp(method, path)).body, path).toMatchObject({ error: "unauthorized" });
      expect((await tcp(method, path)).status).toBe(401);
    }
    expect((await tcp("GET", "/v1/version", { headers: bearer })).status).toBe(200);
    expect((await call("GET", "/v1/version")).status).toBe(200);
  });

  it.each(["", "Bearer", "Bearer x", "Basic dTpw", "bearer "])("refuses the credentials %j", async (authorization) => {
    const { tcp, token } = await startOnLoopback();
    expect((await tcp("GET", "/v1/version", { headers: { authorization } })).status).toBe(401);
    const almost = `Bearer ${token.slice(0, -1)}${token.endsWith("0") ? "1" : "0"}`;
    expect((await tcp("GET", "/v1/version", { headers: { authorization: almost } })).status).toBe(401);
  });

  it("listens on 127.0.0.1 alone", async () => {
    const { port } = await startOnLoopback();
    const refused = await new Promise((resolve) => {
      const socket = connect({ host: "::1", port });
      socket.on("error", () => resolve(true));
      socket.on("connect", () => {
        socket.destroy();
        resolve(false);
      });
    });
    expect(refused).toBe(true);
  });

  it("keeps its token in a file of mode 0600, the same after a restart", async () => {
    const first = await startOnLoopback();
    expect(statSync(first.paths.localToken).mode & 0o777).toBe(0o600);
    await first.daemon.stop();
    await startTestDaemon({ at: first });
    expect(readFileSync(first.paths.localToken, "utf8").trim()).toBe(first.token);
  });

  it.each([
    ["the token in a parameter", (token: string) => `?cursor=${token}`],
    ["the token among other text", (token: string) => `?cursor=x${token}x`],
    ["the token as a name", (token: string) => `?${token}=1`],
    ["the token percent-encoded", (token: string) => `?cursor=${percentEncode(token)}`],
    ["the token encoded twice", (token: string) => `?cursor=${encodeURIComponent(percentEncode(token))}`],
    ["a parameter called token", () => "?token=guess"],
    ["a parameter called access_token", () => "?limit=1&access_token=guess"],
    ["a parameter called local_token, encoded", () => "?%6Cocal%5Ftoken=guess"],
  ])("refuses %s with token_in_query, and logs no value", async (_, query) => {
    const daemon = await startOnLoopback();
    const { tcp, call, token, bearer } = daemon;
    for (const answer of [
      await tcp("GET", `/v1/inbox${query(token)}`, { headers: bearer }),
      await tcp("GET", `/v1/inbox${query(token)}`),
      await call("GET", `/v1/inbox${query(token)}`),
    ]) {
      expect([answer.status, answer.body.error]).toEqual([400, "token_in_query"]);
    }
    expect(securityEvents(daemon)).toContain("token_in_query");
    const log = readFileSync(daemon.paths.log, "utf8");
    expect(log).not.toContain(token);
    expect(log).not.toContain("guess");
  });

  it.each(["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.nip.io", "0.0.0.0", "127.0.0.2"])(
    "refuses the Host %s",
    async (host) => {
      const { tcp, bearer } = await startOnLoopback();
      const answer = await tcp("GET", "/v1/version", { headers: { ...bearer, host } });
      expect([answer.status, answer.body.error]).toEqual([403, "forbidden_host"]);
    },
  );

  it.each(["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:65535", "[::1]", "[::1]:7600"])(
    "accepts the Host %s",
    async (host) => {
      const { tcp, bearer } = await startOnLoopback();
      expect((await tcp("GET", "/v1/version", { headers: { ...bearer, host } })).status).toBe(200);
    },
  );

  it("refuses every Origin that is not on the allow-list, preflight too, and never sends CORS headers", async () => {
    const allowed = "https://app.example";
    const { tcp, bearer } = await startOnLoopback({ allowed_origins: [allowed] });
    for (const origin of ["https://evil.example", "null", "http://localhost", `${allowed}.evil`]) {
      const answer = await tcp("GET", "/v1/version", { headers: { ...bearer, origin } });
      expect([answer.status, answer.body.error]).toEqual([403, "forbidden_origin"]);
      const preflight = await tcp("OPTIONS", "/v1/send", {
        headers: { origin, "access-control-request-method": "POST" },
      });
      expect([preflight.status, preflight.body.error]).toEqual([403, "forbidden_origin"]);
    }
    const answers = [
      await tcp("GET", "/v1/version", { headers: { ...bearer, origin: allowed } }),
      await tcp("OPTIONS", "/v1/send", { headers: { ...bearer, origin: allowed } }),
    ];
    expect(answers[0]?.status).toBe(200);
    for (const { headers } of answers) {
      expect(Object.keys(headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
  });

  it("opens health alone where public_health_check says so", async () => {
    const { tcp } = await startOnLoopback({ public_health_check: true });
    expect((await tcp("GET", "/v1/health")).status).toBe(200);
    expect((await tcp("GET", "/v1/version")).status).toBe(401);
    expect((await tcp("GET", "/v1/health", { headers: { host: "evil.example" } })).status).toBe(403);
  });

  it("is off where the configuration says so, and leaves no port file", async () => {
    const daemon = await startTestDaemon({ overrides: { ipc: { tcp_enabled: false } } });
    expect(daemon.daemon.httpPort).toBeUndefined();
    expect(() => statSync(daemon.paths.httpPort)).toThrow(/ENOENT/);
  });
});

describe("requests in flight", () => {
  it("above the bound are 429 daemon_busy, over both doors together, and room comes back", async () => {
    const daemon = await startOnLoopback({ max_in_flight: 2 });
    // An unknown name makes the sender wait for the broker, which does not come.
    const waiting = [1, 2].map(() => daemon.send({ to: "@ghost", message: "m" }));
    let busy = await daemon.call("GET", "/v1/version");
    while (busy.status !== 429) busy = await daemon.call("GET", "/v1/version");
    expect(busy.body).toMatchObject({ error: "daemon_busy", retryable: true });
    expect((await daemon.tcp("GET", "/v1/version", { headers: daemon.bearer })).status).toBe(429);
    daemon.link.automatic.set("members.list", () => ({ type: "answered", status: 200, body: { items: [] } }));
    daemon.link.goOnline();
    for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(404);
    expect((await daemon.call("GET", "/v1/version")).status).toBe(200);
  });

  it("are refused by size before their body is read whole", async () => {
    const daemon = await startTestDaemon({ overrides: { ipc: { max_body_bytes: 1_024 } } });
    const answer = await new Promise<string>((resolve) => {
      const socket = connect(daemon.paths.sock);
      socket.write("POST /v1/send HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
      socket.write('content-length: 900000\r\n\r\n{"to":"#general"');
      socket.once("data", (chunk) => {
        socket.destroy();
        resolve(chunk.toString());
      });
    });
    expect(answer).toContain("413");
    expect(answer).toContain("payload_too_large");
  });
});

function percentEncode(text: string): string {
  return [...text].map((character) => `%${character.charCodeAt(0).toString(16)}`).join("");
}

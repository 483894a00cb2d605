// The server frame over real sockets: what it reads, what it refuses, and that every refusal has the one error shape.
import { on, once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import type { MeshError } from "@claudemesh/protocol/errors";
import { limits } from "@claudemesh/protocol/messages/limits";
import type { FastifyInstance } from "fastify";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createHttpServer, type HttpServerOptions } from "./server.ts";

const maxBodyBytes = 4_096;
const schema = {
  type: "object",
  additionalProperties: false,
  required: ["name"],
  properties: { name: { type: "string" }, count: { type: "integer", default: 7 }, meta: { type: "object" } },
};

let server: FastifyInstance;
let url: string;
let errors: { error: MeshError; method: string; route: string }[];
let gate: PromiseWithResolvers<void>;
let held: PromiseWithResolvers<void>;

beforeEach(async () => {
  errors = [];
  gate = Promise.withResolvers();
  held = Promise.withResolvers();
  let waiting = 0;
  server = createHttpServer({
    maxBodyBytes,
    maxInFlight: 3,
    busyCode: "busy",
    onError: (error, request) => void errors.push({ error, ...request }),
  });
  server.post("/things", { schema: { body: schema } }, async (request) => ({ got: request.body }));
  server.put("/things/:id", async (request) => ({ params: request.params }));
  server.get("/held", async () => {
    waiting += 1;
    if (waiting === 3) held.resolve();
    await gate.promise;
    return { held: true };
  });
  server.get("/boom", async () => {
    throw new Error("the password is hunter2");
  });
  await server.listen({ host: "127.0.0.1", port: 0 });
  url = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  gate.resolve();
  await server.close();
});

type Answer = { status: number; headers: Headers; body: Record<string, unknown> };

async function ask(method: string, path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url + path, { method, ...init });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Answer["body"] };
}

function post(body: string | Buffer, contentType = "application/json"): Promise<Answer> {
  return ask("POST", "/things", { body, headers: { "content-type": contentType } });
}

async function dial(): Promise<Socket> {
  const socket = connect((server.server.address() as AddressInfo).port, "127.0.0.1");
  await once(socket, "connect");
  return socket;
}

/** Returns when the server has closed its port and the connections that were idle. */
async function beginClose(): Promise<{ end: Promise<undefined> }> {
  const end = server.close();
  await expect.poll(() => server.server.listening).toBe(false);
  return { end };
}

/** Everything that the server says until it ends the connection. */
async function hear(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** The next answer on a connection that stays open. */
async function hearAnswer(socket: Socket): Promise<string> {
  let heard = "";
  for await (const [chunk] of on(socket, "data", { close: ["close"] })) {
    heard += String(chunk);
    const [head = "", body] = heard.split("\r\n\r\n");
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
    if (body !== undefined && Buffer.byteLength(body) >= length) return heard;
  }
  throw new Error(`the connection ended after "${heard}"`);
}

function jsonOf(response: string): unknown {
  return JSON.parse(response.slice(response.indexOf("\r\n\r\n") + 4));
}

describe("a JSON body", () => {
  test("arrives as it was written: nothing filled in, nothing converted, no key special", async () => {
    const text = '{"name":"grüße \\ud83d\\ude00","meta":{"__proto__":{"x":1},"constructor":null,"n":1.50}}';
    const response = await fetch(`${url}/things`, {
      method: "POST",
      body: text,
      headers: { "content-type": "application/json; charset=utf-8" },
    });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(
      '{"got":{"name":"grüße 😀","meta":{"__proto__":{"x":1},"constructor":null,"n":1.5}}}',
    );
  });

  test.each([
    ["duplicate keys", '{"name":"a","name":"b"}', "duplicate_key"],
    ["duplicate keys spelt differently", '{"name":"a","n\\u0061me":"b"}', "duplicate_key"],
    ["half a surrogate pair", '{"name":"\\ud83d"}', "lone_surrogate"],
    ["an integer that a double cannot hold", '{"name":"a","meta":{"n":9007199254740993}}', "number_out_of_range"],
    ["a number that overflows", '{"name":"a","meta":{"n":1e999}}', "number_out_of_range"],
    ["text after the value", '{"name":"a"} x', "invalid_json"],
    ["a byte order mark", '\ufeff{"name":"a"}', "invalid_json"],
    ["a comment", '{"name":"a"/**/}', "invalid_json"],
    ["nothing", "", "invalid_json"],
    ["too much depth", "[".repeat(limits.jsonDepth + 1) + "]".repeat(limits.jsonDepth + 1), "too_deep"],
  ])("with %s is refused", async (_what, text, code) => {
    const { status, body } = await post(text);
    expect({ status, body }).toMatchObject({ status: 400, body: { error: code, retryable: false } });
  });

  test("that is not UTF-8 is refused", async () => {
    const bytes = Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]);
    expect(await post(bytes)).toMatchObject({ status: 400, body: { error: "invalid_utf8" } });
  });

  test.each([
    ["count", '{"name":"a","count":"1"}', "invalid_request"],
    ["name", '{"name":1}', "invalid_request"],
    ["name", "{}", "invalid_request"],
    ["extra", '{"name":"a","extra":1}', "unknown_field"],
    ["__proto__", '{"name":"a","__proto__":1}', "unknown_field"],
  ])("whose %s breaks the schema is refused by that name: %s", async (field, text, code) => {
    const { status, body } = await post(text);
    expect({ status, body }).toMatchObject({ status: 400, body: { error: code, field, retryable: false } });
    expect(body.message).toContain(field);
  });

  test.each(["text/plain", "application/x-www-form-urlencoded", "application/jsonx", "application/json-patch+json"])(
    "sent as %s is an unsupported media type",
    async (contentType) => {
      const { status, body } = await post('{"name":"a"}', contentType);
      expect({ status, body }).toMatchObject({ status: 415, body: { error: "unsupported_media_type" } });
    },
  );

  test("without a content type is an unsupported media type", async () => {
    const { status, body } = await ask("POST", "/things", { body: Buffer.from('{"name":"a"}') });
    expect({ status, body }).toMatchObject({ status: 415, body: { error: "unsupported_media_type" } });
  });

  test("up to the limit is read; one byte more is too large", async () => {
    const fill = (bytes: number) => `{"name":"${"x".repeat(bytes - 11)}"}`;
    expect((await post(fill(maxBodyBytes))).status).toBe(200);
    const { status, body } = await post(fill(maxBodyBytes + 1));
    expect({ status, body }).toMatchObject({ status: 413, body: { error: "payload_too_large" } });
  });

  test("announced too large is refused before any of it is sent", async () => {
    const socket = await dial();
    socket.write(
      "POST /things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000000\r\n\r\n",
    );
    const response = await hearAnswer(socket);
    expect(response).toMatch(/^HTTP\/1\.1 413 /);
    expect(jsonOf(response)).toMatchObject({ error: "payload_too_large" });
  });

  test("of unknown length is refused as soon as it is too large, without waiting for its end", async () => {
    const socket = await dial();
    socket.write(
      "POST /things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    const chunk = "x".repeat(1_024);
    for (let sent = 0; sent <= maxBodyBytes; sent += chunk.length) socket.write(`400\r\n${chunk}\r\n`);
    const response = await hearAnswer(socket);
    expect(response).toMatch(/^HTTP\/1\.1 413 /);
    expect(jsonOf(response)).toMatchObject({ error: "payload_too_large" });
  });

  test.each([
    ["too large", "application/json", 413],
    ["of another type", "text/plain", 415],
  ])("that is %s is refused to a sender that is still writing, and the connection goes on", async (_, type, status) => {
    const socket = await dial();
    const head = (length: number, contentType: string) =>
      `POST /things HTTP/1.1\r\nHost: x\r\nContent-Type: ${contentType}\r\nContent-Length: ${length}\r\n\r\n`;
    socket.write(head(1_000_000, type));
    expect(await hearAnswer(socket)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    socket.write("x".repeat(1_000_000));
    socket.write(`${head(12, "application/json")}{"name":"a"}`);
    expect(await hearAnswer(socket)).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
  });

  test("that is too large ends a connection that its sender called the last request of", async () => {
    const socket = await dial();
    socket.write(
      "POST /things HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n",
    );
    socket.write("x".repeat(100_000));
    expect(await hear(socket)).toMatch(/^HTTP\/1\.1 413 /);
  });
});

describe("a route", () => {
  test("with a schema for its replies is refused, for nothing would keep to it", async () => {
    const other = createHttpServer({ maxBodyBytes, maxInFlight: 3, busyCode: "busy", onError: () => undefined });
    other.get("/", { schema: { response: { 200: schema } } }, async () => ({ name: "n" }));
    await expect(other.ready()).rejects.toThrow("replies have no schemas here");
  });
});

describe("a path", () => {
  test("that is not there is not found, and the answer says which", async () => {
    for (const path of ["/nowhere", "/Things", "/things/1/2"]) {
      const { status, body } = await ask("GET", `${path}?q=secret`);
      expect({ status, body }).toMatchObject({ status: 404, body: { error: "not_found", retryable: false } });
      expect(body.message).toContain(`GET ${path} `);
      expect(body.message).not.toContain("secret");
    }
  });

  test("that takes other methods says which", async () => {
    const things = await ask("GET", "/things?x=1");
    expect(things).toMatchObject({ status: 405, body: { error: "method_not_allowed" } });
    expect(things.headers.get("allow")).toBe("POST");
    const thing = await ask("DELETE", "/things/17");
    expect(thing.status).toBe(405);
    expect(thing.headers.get("allow")).toBe("PUT");
    expect((await ask("OPTIONS", "/held")).status).toBe(405);
  });

  test("that cannot be decoded is an invalid request", async () => {
    const { status, body } = await ask("PUT", "/things/%zz");
    expect({ status, body }).toMatchObject({ status: 400, body: { error: "invalid_request" } });
  });

  test("hands its decoded parameters over", async () => {
    expect((await ask("PUT", "/things/a%2Fb%25")).body).toEqual({ params: { id: "a/b%" } });
  });
});

describe("a request that offers another protocol", () => {
  const offering = (protocol: string) =>
    `POST /things HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: ${protocol}\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"name":"a"}`;

  test.for(["h2c", "websocket"])("is served as any other: %s", async (protocol) => {
    // This server accepts WebSockets, or no protocol at all.
    if (protocol !== "websocket") server.server.on("upgrade", (_request, socket) => socket.destroy());
    const socket = await dial();
    socket.write(offering(protocol));
    const response = await hear(socket);
    expect(response).toMatch(/^HTTP\/1\.1 200 /);
    expect(jsonOf(response)).toEqual({ got: { name: "a" } });
  });

  test("is an upgrade where that is a WebSocket and the server accepts it", async () => {
    server.server.on("upgrade", (_request, socket) => socket.end("taken"));
    const socket = await dial();
    socket.write(offering("WebSocket"));
    expect(await hear(socket)).toBe("taken");
  });
});

describe("bytes that are no HTTP", () => {
  test.each([
    "nonsense\r\n\r\n",
    "GET / HTTP/9.9\r\n\r\n",
    "GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n",
    "\x16\x03\x01\x02\x00",
  ])("%j get one JSON answer and the connection ends", async (bytes) => {
    const socket = await dial();
    socket.write(bytes);
    const response = await hear(socket);
    expect(response).toMatch(/^HTTP\/1\.1 400 /);
    expect(response).toContain("content-type: application/json\r\n");
    expect(jsonOf(response)).toMatchObject({ error: "invalid_request", retryable: false });
  });

  test("a request without a Host is refused in the one error shape", async () => {
    const socket = await dial();
    socket.write("GET /held HTTP/1.1\r\nConnection: close\r\n\r\n");
    const response = await hear(socket);
    expect(response).toMatch(/^HTTP\/1\.1 400 /);
    expect(jsonOf(response)).toMatchObject({ error: "invalid_request", field: "Host" });
  });

  test("a request that expects what is not understood is refused in it too; 100-continue is not among that", async () => {
    const expecting = (what: string) =>
      `POST /things HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: ${what}\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"name":"a"}`;
    const socket = await dial();
    socket.write(expecting("miracles"));
    const response = await hear(socket);
    expect(response).toMatch(/^HTTP\/1\.1 417 /);
    expect(jsonOf(response)).toMatchObject({ error: "expectation_failed", retryable: false });
    const other = await dial();
    other.write(expecting("100-continue"));
    expect(await hear(other)).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
  });

  test("headers beyond the bound are refused likewise", async () => {
    const socket = await dial();
    socket.write(`GET /held HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(100_000)}\r\n\r\n`);
    expect(jsonOf(await hear(socket))).toMatchObject({ error: "invalid_request" });
  });

  test("a request that does not arrive in time is a time-out that may be retried", async () => {
    const socket = new PassThrough();
    const timeout = Object.assign(new Error("slow"), { code: "ERR_HTTP_REQUEST_TIMEOUT" });
    server.server.emit("clientError", timeout, socket as unknown as Socket);
    const response = await hear(socket as unknown as Socket);
    expect(response).toMatch(/^HTTP\/1\.1 408 /);
    expect(jsonOf(response)).toMatchObject({ error: "request_timeout", retryable: true });
  });

  test("a peer that resets the connection is let go", async () => {
    const socket = await dial();
    socket.write("POST /things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{");
    socket.resetAndDestroy();
    expect((await post('{"name":"a"}')).status).toBe(200);
  });
});

describe("connections", () => {
  /** Another server, whose bounds are reached soon. */
  async function listen(bounds: Partial<HttpServerOptions>): Promise<{ port: number }> {
    const other = createHttpServer({
      maxBodyBytes,
      maxInFlight: 3,
      busyCode: "busy",
      onError: () => undefined,
      ...bounds,
    });
    other.post("/things", async (request) => ({ got: request.body }));
    await other.listen({ host: "127.0.0.1", port: 0 });
    onTestFinished(async () => {
      await other.close();
    });
    return { port: (other.server.address() as AddressInfo).port };
  }
  const timeouts = { headersMs: 100, requestMs: 200, answerMs: 10_000, partingMs: 5_000, checkMs: 20 };

  test.for([
    ["headers", "POST /things HTTP/1.1\r\nHost: x\r\nX-Slow: "],
    ["a body", "POST /things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"],
  ] as const)("that send %s drop by drop are ended with a time-out", async ([, beginning]) => {
    const { port } = await listen({ timeouts });
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(beginning);
    const drops = setInterval(() => socket.writable && socket.write(" "), 10);
    const response = await hear(socket);
    clearInterval(drops);
    expect(response).toMatch(/^HTTP\/1\.1 408 /);
    expect(jsonOf(response)).toMatchObject({ error: "request_timeout", retryable: true });
  });

  test("beyond the bound are closed as they come, and room is made by those that go", async () => {
    const { port } = await listen({ maxConnections: 2 });
    const within = [connect(port, "127.0.0.1"), connect(port, "127.0.0.1")];
    await Promise.all(within.map((socket) => once(socket, "connect")));
    const beyond = connect(port, "127.0.0.1");
    beyond.on("error", () => undefined);
    expect(await hear(beyond)).toBe("");
    for (const socket of within) socket.destroy();
    const ask = () =>
      fetch(`http://127.0.0.1:${port}/nowhere`).then(
        ({ status }) => status,
        () => 0,
      );
    await expect.poll(ask).toBe(404);
  });
});

describe("an encoding", () => {
  const body = JSON.stringify({ name: "x" });
  test.each([
    ["application/json", {}],
    ["application/json; charset=utf-8", {}],
    ["application/json;Charset=UTF8", {}],
    ['application/json; charset="utf-8"', { "content-encoding": "identity" }],
  ])("that the body has is taken: %s %j", async (type, headers) => {
    const answer = await ask("POST", "/things", { body, headers: { "content-type": type, ...headers } });
    expect(answer.status).toBe(200);
  });

  test.each([
    ["application/json; charset=iso-8859-1", {}],
    ["application/json; charset=utf-8; charset=utf-16", {}],
    ["application/json; charset", {}],
    ["application/json", { "content-encoding": "gzip" }],
    ["application/json", { "content-encoding": "identity, br" }],
  ])("that it has not is refused before it is read: %s %j", async (type, headers) => {
    const answer = await ask("POST", "/things", { body, headers: { "content-type": type, ...headers } });
    expect(answer).toMatchObject({ status: 415, body: { error: "unsupported_media_type" } });
    expect(answer.headers.get("accept-encoding")).toBe("content-encoding" in headers ? "identity" : null);
  });
});

describe("requests in flight", () => {
  test("beyond the bound are busy and told when to come back; those within it are served", async () => {
    const within = [ask("GET", "/held"), ask("GET", "/held"), ask("GET", "/held")];
    await held.promise;
    const beyond = await post('{"name":"a"}');
    expect(beyond).toMatchObject({ status: 429, body: { error: "busy", retryable: true, limit: 3 } });
    expect(beyond.headers.get("retry-after")).toBe("1");
    gate.resolve();
    for (const answer of within) expect((await answer).status).toBe(200);
    expect((await post('{"name":"a"}')).status).toBe(200);
  });

  test("are freed by a peer that hangs up", async () => {
    const sockets = [await dial(), await dial(), await dial()];
    for (const socket of sockets) socket.write("GET /held HTTP/1.1\r\nHost: x\r\n\r\n");
    await held.promise;
    const gone = sockets.map((socket) => once(socket, "close"));
    for (const socket of sockets) socket.destroy();
    await Promise.all(gone);
    // The server learns of it a moment later than we do.
    await expect.poll(async () => (await post('{"name":"a"}')).status).toBe(200);
  });

  test("finish while the server stops, and their connections end with them", async () => {
    const sockets = [await dial(), await dial(), await dial()];
    for (const socket of sockets) socket.write("GET /held HTTP/1.1\r\nHost: x\r\n\r\n");
    await held.promise;
    const closed = await beginClose();
    gate.resolve();
    for (const response of await Promise.all(sockets.map(hear))) {
      expect(response).toMatch(/^HTTP\/1\.1 200 /);
      expect(jsonOf(response)).toEqual({ held: true });
    }
    await closed.end;
  });

  test("that arrive while the server stops hear so in the one error shape", async () => {
    const socket = await dial();
    // A peer that has the first answer knows that the server has begun to read the second request.
    socket.write("GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\nGET /boom HTTP/1.1\r\nHost: x\r\n");
    await once(socket, "readable");
    expect(String(socket.read())).toMatch(/^HTTP\/1\.1 404 /);
    const closed = await beginClose();
    socket.write("\r\n");
    const response = await hear(socket);
    expect(response).toMatch(/^HTTP\/1\.1 503 /);
    expect(jsonOf(response)).toMatchObject({ error: "stopping", retryable: true });
    await closed.end;
  });

  test("that the server has not read when it begins to stop hear so too", async () => {
    const sockets = [await dial(), await dial()];
    for (const socket of sockets) {
      socket.write("GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n");
      expect(await hearAnswer(socket)).toMatch(/^HTTP\/1\.1 404 /);
    }
    for (const socket of sockets) socket.write("GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n");
    const end = server.close();
    for (const response of await Promise.all(sockets.map(hear))) {
      expect(response).toMatch(/^HTTP\/1\.1 503 /);
      expect(jsonOf(response)).toMatchObject({ error: "stopping", retryable: true });
    }
    await end;
  });
});

describe("an unexpected failure", () => {
  test("is internal, tells the caller nothing about itself, and keeps its cause for the log", async () => {
    const { status, body } = await ask("GET", "/boom");
    expect({ status, body }).toMatchObject({ status: 500, body: { error: "internal", retryable: true } });
    expect(JSON.stringify(body)).not.toContain("hunter2");
    expect(errors).toMatchObject([{ method: "GET", route: "/boom", error: { code: "internal" } }]);
    expect(errors[0]?.error.cause).toMatchObject({ message: expect.stringContaining("hunter2") });
  });

  test("every refusal is reported once, with its route and not its path", async () => {
    await ask("DELETE", "/things/secret");
    await ask("PUT", "/things/%zz");
    await post("{");
    expect(errors.map(({ method, error }) => [method, error.code])).toEqual([
      ["DELETE", "method_not_allowed"],
      ["PUT", "invalid_request"],
      ["POST", "invalid_json"],
    ]);
    for (const { route } of errors) expect(route).not.toContain("secret");
  });
});

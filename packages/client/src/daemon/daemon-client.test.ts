import { symlinkSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSocketServer, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ensureMeshDir, meshPaths, writeMeshConfig } from "../home/home.ts";
import { Queue } from "../testing/fake-broker.ts";
import { TemporaryDir } from "../testing/temporary-dir.ts";
import { bodyOf, createDaemonClient, type DaemonClient, DaemonUnreachable } from "./daemon-client.ts";
import { openLocalDaemon } from "./local-daemon.ts";

type Seen = {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
  readonly socket: Socket;
};
type Answerer = (response: ServerResponse, seen: Seen) => void;

let dir: TemporaryDir;
let server: Server;
let sockets: Set<Socket>;
let seen: Queue<Seen>;
let answer: Answerer;
let client: DaemonClient;

const answerJson = (status: number, body: unknown): Answerer => {
  return (response) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
};

async function startServer(): Promise<void> {
  sockets = new Set();
  server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const { method, url, headers, socket } = request;
    const arrived = { method, url, headers, body, socket };
    seen.push(arrived);
    answer(response, arrived);
  });
  server.on("connection", (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(dir.at("sock"), resolve));
}

async function stopServer(): Promise<void> {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
}

beforeEach(async () => {
  dir = new TemporaryDir();
  seen = new Queue();
  answer = answerJson(200, {});
  await startServer();
  client = createDaemonClient({ socketPath: dir.at("sock"), timeoutMs: 10_000 });
});

afterEach(async () => {
  client.close();
  await stopServer();
  dir.remove();
});

async function failureOf(call: Promise<unknown>): Promise<DaemonUnreachable> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof DaemonUnreachable) return error;
  throw new Error("the call did not end as unreachable", { cause: error });
}

describe("calls", () => {
  it("ask for what the API has, with JSON in and out", async () => {
    answer = answerJson(202, { status: "queued" });
    const request = { to: "@bob", message: "hello", meta: { ü: 1 } };
    expect(await client.send(request)).toEqual({ status: 202, body: { status: "queued" } });
    const sent = await seen.next();
    expect([sent.method, sent.url]).toEqual(["POST", "/v1/send"]);
    expect(sent.headers).toMatchObject({ "content-type": "application/json", host: "localhost" });
    expect(sent.headers["idempotency-key"]).toBeUndefined();
    expect(JSON.parse(sent.body)).toEqual(request);
  });

  it("have their routes and queries", async () => {
    await client.version();
    await client.health();
    await client.inbox();
    await client.inbox({ since: 5, topic: "a&b", from: "alice", limit: 10, cursor: "x=" });
    await client.outbox({ status: "dead", limit: 1 });
    await client.outboxRow("a/../b?c");
    await client.message("#1");
    await client.call("DELETE", "/v1/thing");
    const urls = [];
    for (let call = 0; call < 8; call++) urls.push((await seen.next()).url);
    expect(urls).toEqual([
      "/v1/version",
      "/v1/health",
      "/v1/inbox",
      "/v1/inbox?since=5&topic=a%26b&from=alice&limit=10&cursor=x%3D",
      "/v1/outbox?status=dead&limit=1",
      "/v1/outbox/a%2F..%2Fb%3Fc",
      "/v1/messages/%231",
      "/v1/thing",
    ]);
  });

  it("hand refusals over as answers, and bodyOf throws them", async () => {
    const body = { error: "idempotency_key_reused", message: "taken", retryable: false };
    answer = answerJson(409, body);
    const refused = await client.send({ to: "@bob", message: "x" });
    expect(refused).toEqual({ status: 409, body });
    expect(() => bodyOf(refused)).toThrow(expect.objectContaining({ name: "DaemonRefused", status: 409, body }));
    answer = answerJson(202, { status: "queued" });
    expect(bodyOf(await client.send({ to: "@bob", message: "x" }))).toEqual({ status: "queued" });
  });

  it("hand text over as it is where the route answers with text", async () => {
    const text = "# TYPE cm_daemon_sends_total counter\n";
    answer = (response) => response.writeHead(200, { "content-type": "text/plain; version=0.0.4" }).end(text);
    expect(await client.metrics()).toEqual({ status: 200, body: text });
  });

  it("take a time limit of their own", async () => {
    answer = () => undefined;
    expect(await failureOf(client.audit({ timeoutMs: 30 }))).toMatchObject({ sent: true, timedOut: true });
  });

  it("find the daemon of a home by themselves", async () => {
    const paths = meshPaths(dir.at("home"), "acme");
    ensureMeshDir(paths);
    writeMeshConfig(paths, { id: "i", name: "acme", broker: "http://127.0.0.1:1", member_name: "me" });
    symlinkSync(dir.at("sock"), paths.sock);
    const local = openLocalDaemon({ home: paths.home });
    expect(await local.version()).toEqual({ status: 200, body: {} });
    local.close();
    expect(() => openLocalDaemon({ home: paths.home, mesh: "other" })).toThrow(/holds acme/);
  });

  it.each([
    ["plain-1", "plain-1"],
    ['"begins with', '"\\"begins with"'],
    ['"both\\"', '"\\"both\\\\\\""'],
    ['in"side\\', 'in"side\\'],
  ])("send the key %j as the header %j", async (idempotencyKey, header) => {
    await client.send({ to: "@bob", message: "x" }, { idempotencyKey });
    expect((await seen.next()).headers["idempotency-key"]).toBe(header);
  });

  it("share one connection", async () => {
    await client.version();
    await client.version();
    expect((await seen.next()).socket).toBe((await seen.next()).socket);
    expect(sockets.size).toBe(1);
  });

  it("take answers of any size, piece by piece", async () => {
    const items = Array.from({ length: 2_000 }, (_, id) => ({ id, body: "ü".repeat(500) }));
    answer = answerJson(200, { items, next_cursor: null });
    expect((await client.inbox()).body).toEqual({ items, next_cursor: null });
  });
});

describe("a daemon that cannot be reached", () => {
  it("is told apart as nothing sent when there is no socket", async () => {
    const absent = createDaemonClient({ socketPath: dir.at("none"), timeoutMs: 1_000 });
    expect(await failureOf(absent.version())).toMatchObject({ sent: false, timedOut: false });
  });

  it("is reported as not sent when no daemon listens on the socket any more", async () => {
    client.close();
    const stale = dir.at("stale");
    const once = createSocketServer();
    await new Promise<void>((resolve) => once.listen(stale, resolve));
    await new Promise((resolve) => once.close(resolve));
    const late = createDaemonClient({ socketPath: stale, timeoutMs: 1_000 });
    expect(await failureOf(late.send({ to: "@bob", message: "x" }))).toMatchObject({ sent: false });
  });

  it("may have acted when it went away after the request was written", async () => {
    answer = (_, { socket }) => socket.destroy();
    expect(await failureOf(client.send({ to: "@bob", message: "x" }))).toMatchObject({ sent: true, timedOut: false });
  });

  it("may have acted when it did not answer in time", async () => {
    const hasty = createDaemonClient({ socketPath: dir.at("sock"), timeoutMs: 30 });
    answer = () => undefined;
    expect(await failureOf(hasty.send({ to: "@bob", message: "x" }))).toMatchObject({ sent: true, timedOut: true });
    hasty.close();
  });

  it("may have acted when its answer was cut off or was no JSON", async () => {
    answer = (response, { socket }) => {
      response.writeHead(202, { "content-length": 100 });
      response.write('{"status":', () => socket.destroy());
    };
    expect(await failureOf(client.send({ to: "@bob", message: "x" }))).toMatchObject({ sent: true });
    answer = (response) => response.end("<html>");
    expect(await failureOf(client.send({ to: "@bob", message: "x" }))).toMatchObject({ sent: true });
  });

  it("is asked again for a read when the kept connection turns out dead, and never for a send", async () => {
    answer = answerJson(200, { version: "1" });
    await client.version();
    let arrivals = 0;
    answer = (response, arrived) => {
      arrivals++;
      if (arrivals === 1) arrived.socket.destroy();
      else answerJson(200, { version: "2" })(response, arrived);
    };
    expect((await client.version()).body).toEqual({ version: "2" });
    expect(arrivals).toBe(2);

    answer = answerJson(200, {});
    await client.version();
    arrivals = 0;
    answer = (_, { socket }) => {
      arrivals++;
      socket.destroy();
    };
    expect(await failureOf(client.send({ to: "@bob", message: "x" }))).toMatchObject({ sent: true });
    expect(arrivals).toBe(1);
  });
});

// The SDK has a typed call for every route, and each of its calls asks for a route that exists, with a request that the
// route takes.
import { createServer } from "node:http";
import { join } from "node:path";
import { createDaemonClient, type DaemonClient } from "@claudemesh/client/daemon";
import { createSchemaCompiler } from "@claudemesh/http/validation";
import { expect, it, onTestFinished } from "vitest";
import { temporaryHome } from "../testing/test-daemon.ts";
import { routes } from "./routes.ts";

const uuid = "019a9ebe-0ea5-7c33-a4d1-0b8f6c2d4e61";
const settle = { lease_token: uuid, broker_message_ids: [uuid] };

/** One call of each kind. `call`, `waitForInbox`, `waitForStage`, `followInbox` and `close` ask for nothing of their own. */
const calls: Record<
  Exclude<keyof DaemonClient, "call" | "close" | "waitForInbox" | "waitForStage" | "followInbox">,
  (daemon: DaemonClient) => unknown
> = {
  send: (daemon) => daemon.send({ to: "@bob", message: "hello" }),
  sendMany: (daemon) => daemon.sendMany([{ to: "@bob", message: "hello" }], { retryForMs: 0 }),
  post: (daemon) => daemon.post({ topic: "builds", message: "green", meta: { run: 42 } }),
  message: (daemon) => daemon.message("build-42"),
  inbox: (daemon) => daemon.inbox({ since: 1, topic: "builds", from: "@bob", limit: 5, cursor: "01" }),
  nextInbox: (daemon) => daemon.nextInbox({ reader: "web-1", acknowledge: "0".repeat(26), limit: 5 }),
  searchInbox: (daemon) => daemon.searchInbox({ q: "build*", limit: 5 }),
  markRead: (daemon) => daemon.markRead("build-42"),
  events: (daemon) => daemon.events().next(),
  outbox: (daemon) => daemon.outbox({ status: "dead", limit: 1, cursor: "01" }),
  outboxRow: (daemon) => daemon.outboxRow("build-42"),
  requeue: (daemon) => daemon.requeue({ id: "build-42", patch_payload: { meta: null }, accept_duplicate: true }),
  dismiss: (daemon) => daemon.dismiss({ id: "build-42", why: "the topic is gone for good" }),
  prune: (daemon) => daemon.prune({ older_than_days: 7 }),
  audit: (daemon) => daemon.audit(),
  topics: (daemon) => daemon.topics({ limit: 1, cursor: "builds" }),
  subscribe: (daemon) => daemon.subscribe("builds"),
  unsubscribe: (daemon) => daemon.unsubscribe("builds"),
  lease: (daemon) => daemon.lease("jobs", { lease_request_id: "worker-1-0001", max: 10, lease_s: 60 }),
  ack: (daemon) => daemon.ack("jobs", settle),
  nack: (daemon) => daemon.nack("jobs", settle),
  reconnect: (daemon) => daemon.reconnect(),
  findings: (daemon) => daemon.findings(),
  queues: (daemon) => daemon.queues(),
  onceKeys: (daemon) => daemon.onceKeys({ state: "uncertain" }),
  parked: (daemon) => daemon.parked("jobs", { limit: 1, after: 7 }),
  peers: (daemon) => daemon.peers({ limit: 1 }),
  pins: (daemon) => daemon.pins(),
  pin: (daemon) => daemon.pin("bob"),
  trustPeer: (daemon) => daemon.trustPeer("bob", { pubkey: "ab".repeat(32) }),
  verifyPeer: (daemon) => daemon.verifyPeer("bob", { pubkey: "ab".repeat(32) }),
  setProfile: (daemon) => daemon.setProfile({ summary: "reviews", visible: true, capabilities: ["review"] }),
  version: (daemon) => daemon.version(),
  health: (daemon) => daemon.health(),
  compat: (daemon) => daemon.compat(),
  metrics: (daemon) => daemon.metrics(),
  openapi: (daemon) => daemon.openapi(),
  rotateToken: (daemon) => daemon.rotateToken(),
  reload: (daemon) => daemon.reload(),
};

type Asked = { readonly method: string; readonly path: string; readonly query: string; readonly body: string };

async function recordCalls(): Promise<Asked[]> {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const { pathname, search } = new URL(request.url ?? "", "http://localhost");
    asked.push({ method: request.method ?? "", path: pathname, query: search, body });
    response.writeHead(200).end(pathname === "/v1/events" ? "event: outbox\nid: x\ndata: {}\n\n" : "{}");
  });
  const socketPath = join(temporaryHome().home, "recorder");
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  const daemon = createDaemonClient({ socketPath, timeoutMs: 10_000 });
  onTestFinished(() => {
    daemon.close();
    server.close();
    server.closeAllConnections();
  });
  for (const call of Object.values(calls)) await call(daemon);
  return asked;
}

const patternOf = (url: string) => new RegExp(`^${url.replaceAll(".", "\\.").replace(/:[a-z]+/g, "[^/]+")}$`);
/** The most exact one, as the server chooses: /v1/outbox/prune is no row. */
const routeOf = ({ method, path }: Asked) =>
  routes.find((route) => route.method === method && route.url === path) ??
  routes.find((route) => route.method === method && patternOf(route.url).test(path));

it("has a call for every route of the local API, and asks each one what it takes", async () => {
  const asked = await recordCalls();
  const compile = createSchemaCompiler();
  const reached = asked.map((each) => {
    const route = routeOf(each) ?? expect.unreachable(`${each.method} ${each.path} is no route`);
    expect(compile(route.schema.querystring)(Object.fromEntries(new URLSearchParams(each.query)))).toBeUndefined();
    if (route.schema.body === undefined) expect(each.body).toBe("");
    else expect(compile(route.schema.body)(JSON.parse(each.body))).toBeUndefined();
    return `${route.method} ${route.url}`;
  });
  expect(reached.toSorted()).toEqual(routes.map(({ method, url }) => `${method} ${url}`).toSorted());
});

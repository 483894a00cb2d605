// Many requests at a real daemon with a real broker behind it, from one seed: what it answers is counted, and its memory
// and descriptors are watched. What must be true of them is the tests' business.
import { readdirSync, readFileSync } from "node:fs";
import { Agent, request as httpRequest, type RequestOptions } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { bodyOf } from "@claudemesh/client/daemon";
import { type ApiRequest, type ApiRoute, type Kind, type Known, makeRequest, readRoutes } from "./api-requests.ts";
import { runJson } from "./process.ts";
import { createRandom, type Random } from "./seed.ts";
import { type Peer, until, untilOnline, World } from "./world.ts";

export type FuzzReport = {
  readonly requests: number;
  /** Accepted by every schema and rule of form, whatever came of it. */
  readonly passed: number;
  readonly statuses: Readonly<Record<string, number>>;
  /** Routes that answered a well-formed request. */
  readonly reached: readonly string[];
  readonly routes: readonly string[];
  readonly failures: readonly string[];
  readonly rssBytes: { readonly before: number; readonly after: number };
  readonly descriptors: { readonly before: number; readonly after: number };
};

const refusedByForm: ReadonlySet<number> = new Set([400, 405, 413, 414, 415, 431]);
const workers = 24;
/** An audit asks about every record there is: one of them is worth thousands of other requests. */
const rare: Readonly<Record<string, number>> = { "GET /v1/audit": 0.002, "POST /v1/token/rotate": 0.05 };

export async function fuzzLocalApi(seed: number, requests: number): Promise<FuzzReport> {
  const world = new World(["--rate-limit", "100000000/60s"]);
  try {
    await world.startBroker();
    const alice = await world.addPeer("alice");
    await alice.start({ env: { CLAUDEMESH_IPC_TCP_ENABLED: "true" } });
    await untilOnline(alice);
    const known: Known = {
      topics: ["general"],
      queues: ["jobs"],
      members: [alice.pubkey],
      clientIds: [],
      brokerIds: [],
    };
    await runJson(["topic", "create", "general"], { home: alice.home });
    await runJson(["queue", "create", "jobs"], { home: alice.home });
    return await new ApiFuzz(alice, known, createRandom(seed)).run(requests);
  } finally {
    await world.end();
  }
}

class ApiFuzz {
  readonly #daemon: Peer;
  readonly #known: Known;
  readonly #random: Random;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: workers });
  readonly #statuses: Record<string, number> = {};
  readonly #reached = new Set<string>();
  readonly #failures: string[] = [];
  #routes: readonly ApiRoute[] = [];
  #passed = 0;

  constructor(daemon: Peer, known: Known, random: Random) {
    this.#daemon = daemon;
    this.#known = known;
    this.#random = random;
  }

  async run(requests: number): Promise<FuzzReport> {
    this.#routes = readRoutes(bodyOf(await this.#daemon.client.openapi()));
    // The first quarter warms up: caches fill, code is compiled, the database grows its page cache.
    await this.#burst(Math.floor(requests / 4));
    const before = await this.#resources();
    await this.#burst(requests - Math.floor(requests / 4));
    const after = await this.#resources();
    this.#agent.destroy();
    return {
      requests,
      passed: this.#passed,
      statuses: this.#statuses,
      reached: [...this.#reached].toSorted(),
      routes: this.#routes.map(({ method, path }) => `${method} ${path}`).toSorted(),
      failures: this.#failures,
      rssBytes: { before: before.rssBytes, after: after.rssBytes },
      descriptors: { before: before.descriptors, after: after.descriptors },
    };
  }

  /** Each worker draws its requests from the one seed; which worker gets which depends on the daemon's pace. */
  async #burst(count: number): Promise<void> {
    let left = count;
    const work = async () => {
      while (left-- > 0 && this.#failures.length < 20) await this.#one();
    };
    await Promise.all(Array.from({ length: workers }, work));
  }

  async #one(): Promise<void> {
    const random = this.#random;
    const route = this.#pickRoute();
    const kind: Kind = random.next() < 0.6 ? "fitting" : random.next() < 0.6 ? "bent" : "spoilt";
    if (kind === "spoilt" && random.below(4) === 0) {
      await this.#sendRaw(route);
      return;
    }
    const request = makeRequest(route, kind, this.#known, random);
    try {
      this.#judge(request, await this.#send(request));
    } catch (error) {
      this.#failures.push(`${request.method} ${request.target.slice(0, 200)}: ${String(error)}`);
    }
  }

  #pickRoute(): ApiRoute {
    for (;;) {
      const route = this.#random.pick(this.#routes);
      const chance = rare[`${route.method} ${route.path}`] ?? 1;
      if (chance === 1 || this.#random.next() < chance) return route;
    }
  }

  #judge(request: ApiRequest, { status, body }: { readonly status: number; readonly body: string }): void {
    this.#statuses[status] = (this.#statuses[status] ?? 0) + 1;
    if (status >= 500) {
      const sent = request.body === undefined ? "" : Buffer.from(request.body).toString("latin1").slice(0, 300);
      this.#failures.push(
        `${status} for ${request.method} ${request.target.slice(0, 300)} ${sent}: ${body.slice(0, 300)}`,
      );
    }
    if (refusedByForm.has(status)) return;
    this.#passed++;
    this.#reached.add(request.route);
    const id = /"broker_message_id":"([0-9a-f-]{36})"/.exec(body)?.[1];
    if (id !== undefined) this.#known.brokerIds[this.#random.below(200) % (this.#known.brokerIds.length + 1)] = id;
  }

  #send(request: ApiRequest): Promise<{ readonly status: number; readonly body: string }> {
    const { method, target, headers, body } = request;
    const door =
      this.#random.below(10) === 0 ? this.#loopback() : { socketPath: join(this.#daemon.folder, "sock"), headers: {} };
    return new Promise((resolve, reject) => {
      const options: RequestOptions = {
        ...door,
        method,
        path: target,
        agent: this.#agent,
        headers: { ...headers, ...door.headers, ...(body === undefined ? {} : { "content-length": body.length }) },
      };
      const outgoing = httpRequest(options, (response) => {
        const status = response.statusCode ?? 0;
        if (status === 200 && request.route === "GET /v1/events") {
          // A stream has no end of its own: its first bytes are the answer.
          response.on("error", () => undefined);
          response.once("data", () => outgoing.destroy());
          response.once("close", () => resolve({ status, body: "" }));
          return;
        }
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.once("error", reject);
        response.once("end", () => resolve({ status, body: Buffer.concat(chunks).toString("utf8") }));
      });
      outgoing.once("error", reject);
      outgoing.end(body);
    });
  }

  #loopback(): { readonly host: string; readonly port: number; readonly headers: Record<string, string> } {
    const port = Number(readFileSync(join(this.#daemon.folder, "http.port"), "utf8"));
    const token = readFileSync(join(this.#daemon.folder, "local_token"), "utf8").trim();
    return { host: "127.0.0.1", port, headers: { authorization: `Bearer ${token}` } };
  }

  /** Bytes that are no HTTP, or only the beginning of it. Anything but a hang or a crash is a good answer. */
  #sendRaw(route: ApiRoute): Promise<void> {
    const random = this.#random;
    const line = `${route.method} ${route.path.replaceAll(/\{\w+\}/g, "x")} HTTP/1.1\r\nHost: localhost\r\n`;
    const bytes = random.pick([
      Buffer.from(Array.from({ length: 1 + random.below(600) }, () => random.below(256))),
      Buffer.from(`${line}Content-Length: 1000\r\n\r\n{"to":`),
      Buffer.from(`${line}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nzz\r\n`),
      Buffer.from(`${line}X: ${"y".repeat(20_000)}\r\n\r\n`),
      Buffer.from(`${line.replace("HTTP/1.1", "HTTP/9.9")}\r\n`),
      Buffer.from(`${line}Host: evil\r\nExpect: 100-continue\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n`),
    ]);
    return new Promise((resolve) => {
      const socket = connect(join(this.#daemon.folder, "sock"));
      let answer = "";
      socket.setEncoding("latin1").on("data", (piece: string) => {
        answer = (answer + piece).slice(0, 200);
      });
      socket.on("error", () => undefined);
      socket.once("close", () => {
        const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
        this.#statuses[`raw ${status}`] = (this.#statuses[`raw ${status}`] ?? 0) + 1;
        if (status >= 500) this.#failures.push(`${status} for raw bytes ${bytes.toString("latin1").slice(0, 300)}`);
        resolve();
      });
      socket.write(bytes);
      // Half of them hang up first.
      if (random.below(2) === 0) socket.destroySoon();
      else socket.end();
    });
  }

  async #resources(): Promise<{ readonly rssBytes: number; readonly descriptors: number }> {
    this.#agent.destroy();
    this.#daemon.client.close();
    const { pid } = bodyOf(await this.#daemon.client.version());
    let last = -1;
    // Connections end a little after their last byte.
    const descriptors = await until("the daemon's descriptors are steady", () => {
      const count = readdirSync(`/proc/${pid}/fd`).length;
      const steady = count === last;
      last = count;
      return steady ? count : undefined;
    });
    const rssKb = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return { rssBytes: Number(rssKb) * 1024, descriptors };
  }
}

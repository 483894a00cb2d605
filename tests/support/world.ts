// A small mesh of real processes on this machine: one broker and some peers, each in a home of its own, in one
// temporary folder that goes away with the test.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createDaemonClient, type DaemonClient, type InboxItem, type OutboxItem } from "@claudemesh/client/daemon";
import { LongRunning, runJson } from "./process.ts";

type BrokerReady = { readonly url: string; readonly admin_token_file: string; readonly pid: number };
type DaemonReady = { readonly socket: string; readonly http_port: number | null };

type Failpoints = { readonly failpoints?: string };
type BrokerStart = Failpoints & { readonly wrapper?: readonly string[] };
export type DaemonOptions = Failpoints & { readonly env?: Readonly<Record<string, string>> };

const failpointEnv = ({ failpoints }: Failpoints): Record<string, string> =>
  failpoints === undefined ? {} : { CLAUDEMESH_FAILPOINTS: failpoints };

export class World {
  readonly folder: string;
  readonly mesh = "acme";
  readonly storePath: string;
  readonly #peers: Peer[] = [];
  readonly #brokerFlags: readonly string[];
  #broker: LongRunning<BrokerReady> | undefined;
  #listen = "127.0.0.1:0";

  /** `base`: where its folder is made. */
  constructor(brokerFlags: readonly string[] = [], base = tmpdir()) {
    this.folder = mkdtempSync(join(base, "cm-"));
    this.storePath = join(this.folder, "broker.db");
    this.#brokerFlags = brokerFlags;
  }

  /** Comes back on the port that it had. */
  async startBroker(options: BrokerStart = {}): Promise<BrokerReady> {
    const args = ["broker", "serve", "--listen", this.#listen, "--store", `sqlite:${this.storePath}`];
    this.#broker = new LongRunning([...args, "--log-level", "warn", ...this.#brokerFlags], {
      home: this.folder,
      env: failpointEnv(options),
      ...(options.wrapper === undefined ? {} : { wrapper: options.wrapper }),
    });
    const ready = await this.#broker.ready;
    this.#listen = new URL(ready.url).host;
    return ready;
  }

  get broker(): LongRunning<BrokerReady> {
    if (this.#broker === undefined) throw new Error("the broker has not been started");
    return this.#broker;
  }

  get brokerUrl(): string {
    return `http://${this.#listen}`;
  }

  /** What is sent meanwhile is queued without a question, so that the broker refuses it only once it is back. */
  async whileBrokerIsAway(work: () => Promise<unknown>): Promise<void> {
    await this.broker.kill("SIGTERM");
    await work();
    await this.startBroker();
  }

  /** The first peer creates the mesh and invites the others. */
  async addPeer(name: string): Promise<Peer> {
    const peer = new Peer(name, join(this.folder, name), this.mesh);
    const at = { brokerUrl: this.brokerUrl, adminTokenFile: `${this.storePath}.admin-token`, cwd: this.folder };
    await enrolPeer(peer, at, this.#peers[0]);
    this.#peers.push(peer);
    return peer;
  }

  /** The broker with alice and bob, whose daemons are not up yet. */
  async startWithPair(): Promise<[alice: Peer, bob: Peer]> {
    await this.startBroker();
    return [await this.addPeer("alice"), await this.addPeer("bob")];
  }

  async end(): Promise<void> {
    await Promise.all(this.#peers.map((peer) => peer.kill()));
    await this.#broker?.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export class Peer {
  readonly name: string;
  readonly home: string;
  readonly mesh: string;
  pubkey = "";
  #process: LongRunning<DaemonReady> | undefined;
  #client: DaemonClient | undefined;

  constructor(name: string, home: string, mesh: string) {
    this.name = name;
    this.home = home;
    this.mesh = mesh;
  }

  get folder(): string {
    return join(this.home, "daemon", this.mesh);
  }

  get process(): LongRunning<DaemonReady> {
    if (this.#process === undefined) throw new Error(`${this.name} has not been started`);
    return this.#process;
  }

  get client(): DaemonClient {
    this.#client ??= createDaemonClient({ socketPath: join(this.folder, "sock"), timeoutMs: 30_000 });
    return this.#client;
  }

  async start(options: DaemonOptions = {}): Promise<DaemonReady> {
    this.#process = new LongRunning(["daemon", "up", "--mesh", this.mesh, "--foreground"], {
      home: this.home,
      env: { ...failpointEnv(options), ...options.env },
    });
    return this.#process.ready;
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    this.#client?.close();
    this.#client = undefined;
    await this.#process?.kill(signal);
  }

  async inbox(): Promise<InboxItem[]> {
    return readPages((cursor) => this.client.inbox({ limit: 1000, ...cursor }));
  }

  async outbox(): Promise<OutboxItem[]> {
    return readPages((cursor) => this.client.outbox({ limit: 1000, ...cursor }));
  }
}

type MeshLocation = { readonly brokerUrl: string; readonly adminTokenFile: string; readonly cwd: string };

/** The first peer creates the mesh; the owner invites the others, to the address that the broker gives for itself. */
export async function enrolPeer(peer: Peer, location: MeshLocation, owner: Peer | undefined): Promise<void> {
  const { brokerUrl, adminTokenFile, cwd } = location;
  const create = ["mesh", "create", peer.mesh, "--broker", brokerUrl, "--admin-token-file", adminTokenFile];
  const enter =
    owner === undefined
      ? create
      : ["mesh", "join", (await runJson<{ invite: string }>(["mesh", "invite"], { home: owner.home })).invite];
  const entered = await runJson<{ member_pubkey: string }>([...enter, "--name", peer.name], { home: peer.home, cwd });
  peer.pubkey = entered.member_pubkey;
}

async function readPages<Item>(
  read: (cursor: { cursor?: string }) => Promise<{ status: number; body: unknown }>,
): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const { status, body } = await read(cursor === undefined ? {} : { cursor });
    if (status !== 200) throw new Error(`reading a page answered ${status}: ${JSON.stringify(body)}`);
    const page = body as { items: Item[]; next_cursor: string | null };
    items.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return items;
}

/** Asks until the answer is there. Waits for a state, never for a time; the bound only ends a test that has failed. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined> | T | undefined,
  boundMs = 60_000,
): Promise<T> {
  const deadline = performance.now() + boundMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > deadline) throw new Error(`this never came true: ${what}`);
    await sleep(20);
  }
}

/** Its daemon has a connection to the broker. */
export function untilOnline(peer: Peer): Promise<true> {
  return until(`${peer.name} is online`, async () => {
    const { body } = await peer.client.health();
    return (body as { broker: { state: string } }).broker.state === "online" || undefined;
  });
}

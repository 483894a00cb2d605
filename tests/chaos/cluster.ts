// What a chaos run strikes: brokers on one store, two daemons behind a network that can be cut, and where the store is
// PostgreSQL, a PostgreSQL and a Redis of its own. Nothing of the machine's own servers is touched. No load and no blows.
// Why: docs/decisions/0066.
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { BrokerProcess } from "../support/broker-process.ts";
import { type FaultyProxy, startFaultyProxy } from "../support/faulty-proxy.ts";
import { listens, type PrivateServer, startPrivatePostgres, startPrivateRedis } from "../support/private-server.ts";
import { runJson } from "../support/process.ts";
import { SmallDisk } from "../support/small-disk.ts";
import { enrolPeer, Peer } from "../support/world.ts";

export type StoreKind = "sqlite" | "postgres";
type Servers = { readonly postgres: PrivateServer; readonly redis: PrivateServer };
/** What ends or removes one thing each. */
export type Closing = (() => unknown)[];

const mesh = "acme";
const diskBytes = 256 * 1_048_576;
const brokersOnPostgres = 2;
const rateLimit = ["--rate-limit", "100000000/60s"];
/** Little enough for the small disk; flushes as in production. */
const postgresSettings = ["max_wal_size=64MB", "min_wal_size=32MB", "max_connections=60"];

export class Cluster {
  readonly kind: StoreKind;
  readonly mesh = mesh;
  /** For commands that open the store themselves, past the network that can be cut. */
  readonly storeUrl: string;
  /** Where daemons and programs find the brokers. */
  readonly brokerUrl: string;
  readonly brokers: readonly BrokerProcess[];
  readonly peers: readonly [Peer, Peer];
  readonly links: Readonly<Record<string, FaultyProxy>>;
  readonly servers: Servers | undefined;
  readonly disks: Readonly<Record<string, SmallDisk>>;

  private constructor(parts: Parts, brokers: readonly BrokerProcess[], peers: readonly [Peer, Peer]) {
    this.kind = parts.kind;
    this.storeUrl = parts.storeUrl;
    this.links = parts.links;
    this.brokerUrl = parts.brokerUrl;
    this.servers = parts.servers;
    this.disks = parts.disks;
    this.brokers = brokers;
    this.peers = peers;
  }

  /**
   * Undefined where PostgreSQL or Redis is not installed. `leaveOut` hears in a line what this machine does not allow;
   * `closing` grows with everything that has to be ended, whether or not this comes to its end.
   */
  static async start(
    kind: StoreKind,
    closing: Closing,
    leaveOut: (line: string) => void,
  ): Promise<Cluster | undefined> {
    const brokers: BrokerProcess[] = [];
    const parts = await openParts(kind, closing, brokers, leaveOut);
    if (parts === undefined) return undefined;
    const { folder, storeFlags, brokerUrl } = parts;
    let adminTokenFile = "";
    for (let n = 0; n < (kind === "postgres" ? brokersOnPostgres : 1); n++) {
      const broker = new BrokerProcess(folder, [...storeFlags, "--public-url", brokerUrl, ...rateLimit]);
      closing.push(() => broker.kill());
      ({ admin_token_file: adminTokenFile } = await broker.start());
      brokers.push(broker);
    }
    const peers = await addPeers({ brokerUrl, adminTokenFile, cwd: folder }, closing);
    return new Cluster(parts, brokers, peers);
  }

  /** A bearer token of the first peer, who owns the mesh. */
  async mintToken(): Promise<string> {
    return (await runJson<{ token: string }>(["mesh", "token"], { home: this.peers[0].home })).token;
  }

  /** A full disk can end PostgreSQL for good: then the operator starts it again. */
  async revivePostgres(): Promise<boolean> {
    const { postgres } = this.servers ?? {};
    if (postgres === undefined || (await answersQuery(postgres.port))) return false;
    await postgres.restart("QUIT", 0);
    return true;
  }
}

type Parts = {
  readonly kind: StoreKind;
  readonly folder: string;
  readonly storeUrl: string;
  readonly storeFlags: readonly string[];
  readonly brokerUrl: string;
  readonly links: Readonly<Record<string, FaultyProxy>>;
  readonly servers: Servers | undefined;
  readonly disks: Readonly<Record<string, SmallDisk>>;
};

/** What was opened last goes first. */
export async function closeAll(closing: Closing): Promise<void> {
  for (const close of closing.splice(0).reverse()) await close();
}

async function openParts(
  kind: StoreKind,
  closing: Closing,
  brokers: readonly BrokerProcess[],
  leaveOut: (line: string) => void,
): Promise<Parts | undefined> {
  const base = mkdtempSync(join(tmpdir(), "cm-chaos-"));
  // PostgreSQL runs as another user and has to reach its own folder in here; homes are private by themselves.
  chmodSync(base, 0o755);
  closing.push(() => rmSync(base, { recursive: true, force: true }));
  const disks: Record<string, SmallDisk> = {};
  const makeDisk = async (name: string) => {
    const disk = await SmallDisk.mount(join(base, name), diskBytes);
    if (disk === undefined) return leaveOut(`full disk of ${name}: only root can mount a small one`);
    closing.push(() => disk.unmount());
    disks[name] = disk;
  };
  await makeDisk("daemons");
  const folder = join(base, "daemons", "mesh");
  mkdirSync(folder);
  let turn = 0;
  const front = await startFaultyProxy("http://127.0.0.1:1", () => brokers[turn++ % brokers.length]?.url ?? "");
  closing.push(() => front.stop());
  const brokerUrl = front.url.replace(/\/$/, "");
  const common = { kind, folder, brokerUrl, disks };
  if (kind === "sqlite") {
    const storeUrl = `sqlite:${join(folder, "broker.db")}`;
    return { ...common, storeUrl, storeFlags: ["--store", storeUrl], servers: undefined, links: { brokers: front } };
  }
  await makeDisk("postgres");
  const servers = await startServers(join(base, "postgres"), closing);
  if (servers === undefined) return undefined;
  const storeUrl = postgresUrl(servers.postgres.port);
  const [toPostgres, toRedis] = await Promise.all([
    startFaultyProxy(storeUrl),
    startFaultyProxy(`redis://127.0.0.1:${servers.redis.port}`),
  ]);
  closing.push(
    () => toPostgres.stop(),
    () => toRedis.stop(),
  );
  return {
    ...common,
    storeUrl,
    storeFlags: ["--store", toPostgres.url, "--redis", toRedis.url],
    servers,
    links: { brokers: front, postgres: toPostgres, redis: toRedis },
  };
}

async function startServers(base: string, closing: Closing): Promise<Servers | undefined> {
  const postgres = await startPrivatePostgres(answersQuery, { base, settings: postgresSettings });
  if (postgres === undefined) return undefined;
  closing.push(() => postgres.stop());
  const redis = await startPrivateRedis(listens);
  if (redis === undefined) return undefined;
  closing.push(() => redis.stop());
  return { postgres, redis };
}

async function addPeers(location: Parameters<typeof enrolPeer>[1], closing: Closing): Promise<readonly [Peer, Peer]> {
  const make = (name: string) => new Peer(name, join(location.cwd, name), mesh);
  const [alice, bob] = [make("alice"), make("bob")];
  await enrolPeer(alice, location, undefined);
  await enrolPeer(bob, location, alice);
  for (const peer of [alice, bob]) {
    closing.push(() => peer.kill());
    await peer.start();
  }
  return [alice, bob];
}

const postgresUrl = (port: number) => `postgres://postgres@127.0.0.1:${port}/postgres`;

async function answersQuery(port: number): Promise<boolean> {
  const client = new pg.Client({ connectionString: postgresUrl(port), connectionTimeoutMillis: 2_000 });
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.query("SELECT 1");
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}

// What one message and one connection cost a broker, on both stores, for docs/scale.md: bytes on disk by table, accepts
// per second and flushes over one socket, memory for idle daemons. Prints JSON. PostgreSQL and Redis are those that tests
// use: node bench/scale/main.ts [messages] [connections]
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createMesh, joinMesh } from "@claudemesh/client/broker";
import type { Link } from "@claudemesh/client/internal/link-contract";
import { generateMemberKeys, identityOf } from "@claudemesh/client/keys";
import { connectOnce } from "@claudemesh/client/link";
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import pg from "pg";
import { LongRunning } from "../../tests/support/process.ts";
import { createTestDatabase, findRedis } from "../../tests/support/services.ts";
import { countFlushes } from "../method/flushes.ts";

const messages = Number(process.argv[2] ?? 20_000);
const connections = Number(process.argv[3] ?? 1_000);
const bodyBytes = 1_024;
const pipelined = 256;
/** Sent once more by one caller and once more by many, with the flushes counted. */
const traced = 1_000;
const stored = messages + 2 * traced;

type Ready = { readonly url: string; readonly admin_token_file: string };
type Measured = {
  readonly accepts_per_s: number;
  readonly bytes_per_idle_daemon: number;
  /** Of the broker's own process; a store of its own flushes by itself. */
  readonly flushes_per_accept: { readonly [callers: string]: number | undefined };
};

async function measure(store: readonly string[], folder: string): Promise<Measured> {
  const flags = ["--rate-limit", "100000000/60s", "--connection-policy", "allow_concurrent", "--log-level", "error"];
  const broker = new LongRunning<Ready>(["broker", "serve", "--listen", "127.0.0.1:0", ...store, ...flags], {
    home: folder,
  });
  try {
    const { url, admin_token_file: file } = await broker.ready;
    const [alice, bob] = [generateMemberKeys(), generateMemberKeys()];
    const adminToken = readFileSync(file, "utf8").trim();
    const mesh = { broker: url, adminToken, name: "acme", ownerName: "alice", keys: alice };
    const { mesh_id: meshId } = await createMesh(mesh);
    const connect = (kind: "daemon" | "client", keys = alice) =>
      connectOnce({ url, identity: identityOf(keys, meshId), kind, agent: "bench", onPush: () => undefined });
    const sender = await connect("client");
    const invited = await ask(sender, "invite.create", {});
    await joinMesh({ invite: decodeInvite(String(invited.invite)), name: "bob", keys: bob });
    const bytesPerDaemon = await memoryPerDaemon(broker.pid, () => connect("daemon", bob));
    const ref = bob.ed25519.public_key;
    const perSecond = await sendAll(sender, ref, { from: 0, count: messages, callers: pipelined });
    const flushes = async (callers: number, from: number) => {
      const sendSome = () => sendAll(sender, ref, { from, count: traced, callers });
      const counted = await countFlushes(productPid(broker.pid), join(folder, "trace"), sendSome);
      return counted && counted.flushes / traced;
    };
    const flushesPerAccept = { one: await flushes(1, messages), many: await flushes(pipelined, messages + traced) };
    await sender.close();
    return {
      accepts_per_s: Math.round(perSecond),
      bytes_per_idle_daemon: Math.round(bytesPerDaemon),
      flushes_per_accept: flushesPerAccept,
    };
  } finally {
    await broker.kill("SIGTERM");
  }
}

async function ask(link: Link, operation: "send" | "invite.create", input: object): Promise<Record<string, unknown>> {
  const outcome = await link.request(operation, input, { timeoutMs: 60_000 });
  if (outcome.type !== "answered" || outcome.status !== 201) throw new Error(JSON.stringify(outcome));
  return outcome.body as Record<string, unknown>;
}

async function memoryPerDaemon(pid: number, connect: () => Promise<Link>): Promise<number> {
  const links: Link[] = [];
  // The first ones grow pools that later ones share.
  for (let n = 0; n < 100; n++) links.push(await connect());
  const before = residentBytes(pid);
  for (let n = 0; n < connections; n++) links.push(await connect());
  const after = residentBytes(pid);
  await Promise.all(links.map((link) => link.close()));
  return (after - before) / connections;
}

function residentBytes(pid: number): number {
  const [, kib] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${productPid(pid)}/status`, "utf8")) ?? [];
  return Number(kib) * 1024;
}

/** The launcher may have become the product, or be its parent. */
function productPid(pid: number): number {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
  return child === undefined || child === "" ? pid : Number(child);
}

async function sendAll(
  link: Link,
  ref: string,
  { from, count, callers }: { readonly from: number; readonly count: number; readonly callers: number },
): Promise<number> {
  const body = "x".repeat(bodyBytes);
  let next = from;
  const began = performance.now();
  const calling = Array.from({ length: callers }, async () => {
    for (let n = next++; n < from + count; n = next++) {
      const id = `${String(n).padStart(20, "0")}-abcde`;
      await ask(link, "send", { client_message_id: id, destination: { kind: "dm", ref }, envelope_version: "2", body });
    }
  });
  await Promise.all(calling);
  return count / ((performance.now() - began) / 1000);
}

async function measureSqlite(folder: string) {
  const path = join(folder, "broker.db");
  const measured = await measure(["--store", `sqlite:${path}`], folder);
  const db = new DatabaseSync(path, { readOnly: true });
  const rows = db.prepare("SELECT name, sum(pgsize) AS bytes FROM dbstat GROUP BY name ORDER BY bytes DESC").all();
  db.close();
  return {
    ...measured,
    bytes_per_message: perMessage(rows),
    file_bytes_per_message: Math.round(statSync(path).size / stored),
  };
}

async function measurePostgres(folder: string) {
  const database = await createTestDatabase("scale");
  const redis = await findRedis();
  if (database === undefined || redis === undefined) return "no PostgreSQL or no Redis";
  try {
    const measured = await measure(["--store", database.url, "--redis", redis.url], folder);
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const { rows } = await client.query<{ name: string; bytes: string }>(
      `SELECT c.relname AS name, pg_relation_size(c.oid) AS bytes FROM pg_class c
       JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'mesh' AND c.relkind IN ('r', 'i') ORDER BY 2 DESC`,
    );
    await client.end();
    return { ...measured, bytes_per_message: perMessage(rows) };
  } finally {
    await database.drop();
    await redis.stop();
  }
}

function perMessage(rows: readonly Readonly<Record<string, unknown>>[]): Record<string, number> {
  const all = rows.map((row): [string, number] => [String(row.name), Math.round(Number(row.bytes) / stored)]);
  const total = all.reduce((sum, [, bytes]) => sum + bytes, 0);
  return { total, ...Object.fromEntries(all.filter(([, bytes]) => bytes > 0)) };
}

const folder = mkdtempSync(join(tmpdir(), "cm-scale-"));
try {
  const sqlite = await measureSqlite(folder);
  const postgres = await measurePostgres(folder);
  process.stdout.write(
    `${JSON.stringify({ messages, body_bytes: bodyBytes, connections, sqlite, postgres }, null, 2)}\n`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}

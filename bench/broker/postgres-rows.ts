// The broker's storage alone on PostgreSQL: the product's own set-based statements, batch after batch, on bare
// connections; no service, no queue, no promise per send. Also its limiter's script alone. Argument: the store as JSON.
// A mesh has two batches under way, one behind the other on one connection, and look-ups go beside them: the server is never
// waited for, whatever the product does.
import { randomBytes } from "node:crypto";
import process from "node:process";
import { lockMesh } from "@claudemesh/members/postgres";
import type { SendToAccept } from "@claudemesh/messages/ports";
import { insertClaims, writeAccepts } from "@claudemesh/messages/postgres-accept-statements";
import { selectAccepted } from "@claudemesh/messages/postgres-stored-accepts";
import { RedisConnection } from "@claudemesh/messages/redis";
import { windowKey } from "@claudemesh/messages/redis-limiter";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import pg from "pg";
import { createClientIds } from "../load/client-ids.ts";
import { Latencies } from "../load/latencies.ts";
import { serveOrders } from "../processes/orders.ts";
import { benchTopic, bodyBytes } from "./bench-meshes.ts";
import type { RowsMesh, RowsOrder, RowsResult } from "./rows-order.ts";
import type { StoreLocation } from "./store-location.ts";

const [locationJson] = process.argv.slice(2);
const location = JSON.parse(locationJson ?? "null") as StoreLocation | null;
if (location?.kind !== "postgres") throw new Error("give the location of a PostgreSQL store as JSON");

/** While the server writes one batch the next one is prepared; beyond eight loops nothing is gained on two cores. */
const loopsPerMesh = 2;
const loopsMax = 8;
const idsPerLimiterCall = 256;
const retentionMs = 365 * 86_400_000;

const connectAll = () => Promise.all(Array.from({ length: loopsMax }, () => connect(location.url)));
const [lookUpClients, meshClients] = await Promise.all([connectAll(), connectAll()]);
const redisReady = Promise.withResolvers<void>();
const redis = new RedisConnection({
  url: location.redisUrl,
  name: "claudemesh-bench",
  onProblem: redisReady.reject,
  onReady: redisReady.resolve,
});
await redisReady.promise;

/** Numbers of 64 bits as numbers, as the product reads them. */
function parserOf(oid: number, format?: "text" | "binary") {
  return oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format as "text");
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    pipeline: true,
    types: { getTypeParser: parserOf },
  } as pg.ClientConfig);
  await client.connect();
  const { rows } = await client.query<{ synchronous_commit: string }>("SHOW synchronous_commit");
  if (rows[0]?.synchronous_commit !== "on") throw new Error("this PostgreSQL does not flush before it answers");
  await client.query("SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off");
  return client;
}

function bare(client: pg.Client): PostgresTransaction {
  const send = (text: string, values: readonly unknown[] = [], name?: string) =>
    client.query({ text, values: [...values], ...(name === undefined ? {} : { name }) });
  return {
    query: async <Row>(text: string, values?: readonly unknown[], name?: string) =>
      (await send(text, values, name)).rows as Row[],
    execute: async (text, values, name) => (await send(text, values, name)).rowCount ?? 0,
    script: async (text) => {
      await client.query(text);
    },
  };
}

const nextMessageId = createUuidV7Generator({ nowMs: Date.now, randomBytes });
const fingerprint = new Uint8Array(32).fill(0xa5);
const body = new Uint8Array(bodyBytes).fill(0x6d);

function makeSend(mesh: RowsMesh, clientMessageId: string, nowMs: number): SendToAccept {
  return {
    meshId: mesh.id,
    senderPubkey: mesh.sender,
    clientMessageId,
    brokerMessageId: nextMessageId(),
    fingerprint,
    envelope: {
      version: "1",
      destination: { kind: "topic", ref: benchTopic },
      replyToId: undefined,
      priority: "next",
      canonicalMeta: "",
      body,
    },
    mentions: [],
    acceptedAtMs: nowMs,
    expiresAtMs: nowMs + retentionMs,
  };
}

type LoopClients = { readonly lookUp: pg.Client; readonly write: pg.Client };

async function writeBatch(
  { lookUp, write }: LoopClients,
  mesh: RowsMesh,
  sends: readonly SendToAccept[],
): Promise<void> {
  const stored = await selectAccepted(bare(lookUp), sends);
  if (stored.some((each) => each !== undefined)) throw new Error("an id came twice");
  // All of it is sent before anything else is, so that the other loop's transaction stands before or behind it.
  const tx = bare(write);
  const begun = [tx.script("BEGIN"), insertClaims(tx, mesh.id, sends, "free"), lockMesh(tx, mesh.id)];
  const [judged] = await Promise.all([writeAccepts(tx, mesh.id, sends, "free"), tx.script("COMMIT"), ...begun]);
  if (judged.some(({ type }) => type !== "accepted")) throw new Error("a send was refused");
}

async function measureRows({ meshes, outstanding, durationMs, ids }: RowsOrder): Promise<RowsResult> {
  const nextId = createClientIds(ids);
  const loops = Math.min(loopsMax, meshes.length * loopsPerMesh);
  const perBatch = Math.ceil(outstanding / loops);
  const times = new Latencies();
  const startedAtMs = performance.now();
  const work = lookUpClients.slice(0, loops).map(async (lookUp, loop) => {
    const mesh = meshes[loop % meshes.length];
    const write = meshClients[loop % meshes.length];
    if (mesh === undefined || write === undefined) throw new Error("an order names one to eight meshes");
    while (performance.now() - startedAtMs < durationMs) {
      const nowMs = Date.now();
      const sends = Array.from({ length: perBatch }, () => makeSend(mesh, nextId(), nowMs));
      const begunAtMs = performance.now();
      await writeBatch({ lookUp, write }, mesh, sends);
      times.add(performance.now() - begunAtMs);
    }
  });
  await Promise.all(work);
  const answered = times.count * perBatch;
  return { answered, perSecond: answered / ((performance.now() - startedAtMs) / 1_000), ...times.figures() };
}

async function measureLimiter({ meshes, outstanding, durationMs }: RowsOrder): Promise<RowsResult> {
  const nextId = createClientIds("time_ordered");
  const perCall = Math.max(1, Math.min(idsPerLimiterCall, Math.ceil(outstanding / (2 * meshes.length))));
  const times = new Latencies();
  const startedAtMs = performance.now();
  const work = meshes.flatMap((mesh) =>
    Array.from({ length: 2 }, async () => {
      const keys = { current: windowKey(mesh.id, 60, 0), outlived: windowKey(mesh.id, 60, -2) };
      while (performance.now() - startedAtMs < durationMs) {
        const begunAtMs = performance.now();
        const ids = Array.from({ length: perCall }, nextId);
        await redis.ask((client) => client.consumeBudget(keys, ids, 1e12, 120), 5_000);
        times.add(performance.now() - begunAtMs);
      }
    }),
  );
  await Promise.all(work);
  const answered = times.count * perCall;
  return { answered, perSecond: answered / ((performance.now() - startedAtMs) / 1_000), ...times.figures() };
}

serveOrders<RowsOrder, RowsResult>((order) => (order.what === "limiter" ? measureLimiter(order) : measureRows(order)));

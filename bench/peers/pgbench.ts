// pgbench with rows like those of an accept: in the product's own tables, one statement and one transaction per message,
// by PostgreSQL's own load generator. No look-up, no limiter, no judging of the destination.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type BenchMesh, benchTopic, bodyBytes } from "../broker/bench-meshes.ts";
import { askPostgres } from "../broker/store-pair.ts";

export type PgbenchResult = { readonly perSecond: number; readonly p50Ms: number; readonly p99Ms: number };

/** The script, and the sequence that its ids grow with. */
export async function preparePgbench(url: string, scriptPath: string, mesh: BenchMesh): Promise<void> {
  await askPostgres(url, "CREATE SEQUENCE IF NOT EXISTS public.bench_number");
  const sender = mesh.keys.ed25519.public_key;
  const recipients = mesh.subscribers.map((pubkey) => `('${pubkey}')`).join(", ");
  const uuid = "lpad(to_hex(n), 32, '0')::uuid";
  const clientId = "lpad(n::text, 26, '0')";
  const text = `WITH next AS MATERIALIZED (SELECT nextval('public.bench_number') AS n),
    claimed AS (INSERT INTO mesh.client_message_dedupe (mesh_id, client_message_id, broker_message_id,
      request_fingerprint, destination_kind, destination_ref, sender_pubkey, first_seen_at, expires_at)
      SELECT '${mesh.id}', ${clientId}, ${uuid}, decode(repeat('a5', 32), 'hex'), 'topic', '${benchTopic}', '${sender}',
        now(), now() + interval '365 days' FROM next),
    message AS (INSERT INTO mesh.topic_message (mesh_id, id, client_message_id, topic, sender_pubkey, envelope_version,
      body, meta, priority, created_at, history_id)
      SELECT '${mesh.id}', ${uuid}, ${clientId}, '${benchTopic}', '${sender}', '1',
        decode(repeat('6d', ${bodyBytes}), 'hex'), '', 'next', now(), n FROM next),
    history AS (INSERT INTO mesh.message_history (mesh_id, history_id, broker_message_id, client_message_id,
      destination_kind, destination_ref, sender_pubkey, accepted_at)
      SELECT '${mesh.id}', n, ${uuid}, ${clientId}, 'topic', '${benchTopic}', '${sender}', now() FROM next)
    INSERT INTO mesh.delivery_queue (mesh_id, history_id, recipient_pubkey, broker_message_id)
    SELECT '${mesh.id}', n, r.pubkey, ${uuid} FROM next, (VALUES ${recipients}) AS r (pubkey);`;
  writeFileSync(scriptPath, `${text.replaceAll(/\s+/g, " ")}\n`);
}

const roomWaitMs = 30_000;
const roomPollMs = 200;

/** Waits until others have closed the connections that they do not use: a server takes so many in all. */
async function untilRoom(url: string, clients: number): Promise<void> {
  const free = `SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
    - count(*) FROM pg_stat_activity WHERE backend_type IN ('client backend', 'walsender')`;
  for (const endsAtMs = performance.now() + roomWaitMs; performance.now() < endsAtMs; await sleep(roomPollMs)) {
    // The one that asks is counted, and gone by then.
    if (Number(await askPostgres(url, free)) + 1 >= clients) return;
  }
  throw new Error(`PostgreSQL has no room for ${clients} clients of pgbench: raise its max_connections`);
}

/** Undefined where pgbench is not installed. */
export async function runPgbench(
  url: string,
  scriptPath: string,
  clients: number,
  durationMs: number,
): Promise<PgbenchResult | undefined> {
  await untilRoom(url, clients);
  const seconds = Math.max(1, Math.round(durationMs / 1_000));
  const args = ["-n", "-M", "prepared", "-c", String(clients), "-j", "2", "-T", String(seconds), "-f", scriptPath, url];
  const child = spawn("pgbench", args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const code = await new Promise<number | undefined>((resolve) => {
    child.once("error", () => resolve(undefined));
    child.once("close", (status) => resolve(status ?? -1));
  });
  if (code === undefined) return undefined;
  const read = readPgbench(output);
  if (code !== 0 || read === undefined) throw new Error(`pgbench exited ${code}: ${output.slice(-2_000)}`);
  return read;
}

/** Its report gives a mean latency and no quantiles: the mean stands for the median, and p99 is not known. */
export function readPgbench(output: string): PgbenchResult | undefined {
  const perSecond = /^tps = ([0-9.]+)/m.exec(output)?.[1];
  const meanMs = /^latency average = ([0-9.]+) ms/m.exec(output)?.[1];
  if (perSecond === undefined || meanMs === undefined) return undefined;
  return { perSecond: Number(perSecond), p50Ms: Number(meanMs), p99Ms: Number.NaN };
}

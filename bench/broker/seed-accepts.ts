// Writes many accepted sends into a store at once, past the product: claims as an accept of the benchmark's own body
// leaves them, and on PostgreSQL the history rows in which their numbers stand. Messages and deliveries are left out, as
// no accept and no retry reads those of others.
import { hash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { readAcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { fingerprint, type Sha256 } from "@claudemesh/protocol/messages/fingerprint";
import pg from "pg";
import type { IdOrder } from "../load/client-ids.ts";
import { type BenchMesh, benchBody, benchTopic } from "./bench-meshes.ts";
import { postgresSeededId, sqliteSeededId } from "./seeded-ids.ts";
import type { StoreLocation } from "./store-location.ts";

export type Seeding = { readonly mesh: BenchMesh; readonly ids: IdOrder; readonly rows: number };

const retentionMs = 365 * 86_400_000;

function benchFingerprint(): Uint8Array {
  const destination = { kind: "topic", ref: benchTopic } as const;
  const { envelope } = readAcceptRequest({ client_message_id: "x", destination, body: benchBody });
  const sha256: Sha256 = {
    bytes: (data) => hash("sha256", data, "buffer"),
    hex: (data) => hash("sha256", data, "hex"),
  };
  return fingerprint(sha256, envelope);
}

export function seedAccepts(location: StoreLocation, seedings: readonly Seeding[]): Promise<void> {
  return location.kind === "sqlite" ? seedSqlite(location.path, seedings) : seedPostgres(location.url, seedings);
}

async function seedSqlite(path: string, seedings: readonly Seeding[]): Promise<void> {
  const db = new DatabaseSync(path);
  const nowMs = Date.now();
  for (const [at, { mesh, ids, rows }] of seedings.entries()) {
    db.exec("BEGIN IMMEDIATE");
    db.prepare(
      `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < CAST(?1 AS INTEGER))
       INSERT INTO client_message_dedupe (mesh_id, client_message_id, broker_message_id, request_fingerprint,
         destination_kind, destination_ref, sender_pubkey, history_id, first_seen_at, expires_at)
       SELECT ?2, ${sqliteSeededId(ids)} AS id, printf('%032x', i), ?3, 'topic', ?4, ?5, i + 1, ?6, ?7
       FROM n ORDER BY id`,
    ).run(rows, mesh.id, benchFingerprint(), benchTopic, mesh.keys.ed25519.public_key, nowMs, nowMs + retentionMs);
    // Followers of history are told that there is nothing behind.
    db.prepare("INSERT INTO mesh_history_counter (mesh_id, last_history_id) VALUES (?, ?)").run(mesh.id, rows);
    db.prepare(
      "INSERT INTO message_search_cursor (mesh_id, mesh_number, indexed_up_to, stepped_at) VALUES (?, ?, ?, 0)",
    ).run(mesh.id, at + 1, rows);
    db.prepare("INSERT INTO rate_limit_counter_cursor (mesh_id, counted_up_to) VALUES (?, ?)").run(mesh.id, rows);
    db.exec("COMMIT");
  }
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
}

async function seedPostgres(url: string, seedings: readonly Seeding[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const { mesh, ids, rows } of seedings) {
      const sender = mesh.keys.ed25519.public_key;
      const id = postgresSeededId(ids);
      const uuid = "lpad(to_hex(i), 32, '0')::uuid";
      await client.query("BEGIN");
      await client.query(
        `INSERT INTO mesh.client_message_dedupe (mesh_id, client_message_id, broker_message_id, request_fingerprint,
           destination_kind, destination_ref, sender_pubkey, first_seen_at, expires_at)
         SELECT $1, ${id}, ${uuid}, $2, 'topic', $3, $4, now(), now() + interval '365 days'
         FROM generate_series(0, $5::bigint - 1) AS i ORDER BY (${id}) COLLATE "C"`,
        [mesh.id, Buffer.from(benchFingerprint()), benchTopic, sender, rows],
      );
      await client.query(
        `INSERT INTO mesh.message_history (mesh_id, history_id, broker_message_id, client_message_id, destination_kind,
           destination_ref, sender_pubkey, accepted_at)
         SELECT $1, i + 1, ${uuid}, ${id}, 'topic', $2, $3, now() FROM generate_series(0, $4::bigint - 1) AS i`,
        [mesh.id, benchTopic, sender, rows],
      );
      // Followers of history are told that there is nothing behind.
      await client.query("INSERT INTO mesh.mesh_history_counter VALUES ($1, $2)", [mesh.id, rows]);
      await client.query(
        "INSERT INTO mesh.message_search_cursor (mesh_id, indexed_up_to, stepped_at) VALUES ($1, $2, now())",
        [mesh.id, rows],
      );
      await client.query("INSERT INTO mesh.rate_limit_counter_cursor (mesh_id, counted_up_to) VALUES ($1, $2)", [
        mesh.id,
        rows,
      ]);
      await client.query("COMMIT");
    }
    // What the server would do by itself in the middle of a round.
    await client.query("VACUUM (ANALYZE) mesh.client_message_dedupe, mesh.message_history");
    await client.query("CHECKPOINT");
  } finally {
    await client.end();
  }
}

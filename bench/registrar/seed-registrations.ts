// Writes many registrations into a store at once, past the product: approval, consumption, registration and verdict of
// each as the product leaves them, with digests that are theirs, under all constraints and triggers. Only the signatures
// and nonces of their approvals are the same everywhere, as those of a consumed one are not looked at again.
import { DatabaseSync } from "node:sqlite";
import { hashSecret } from "@claudemesh/members/credentials";
import { sha256 } from "@claudemesh/members/sha256";
import { lengthPrefixed, registrarProtocolVersion } from "@claudemesh/protocol/registrar/digests";
import pg from "pg";
import { postgresSeededId, sqliteSeededId } from "../broker/seeded-ids.ts";
import type { StoreLocation } from "../broker/store-location.ts";
import type { RegistrarMesh } from "./bench-registration.ts";
import { benchAttempt, benchEffect } from "./bench-request.ts";

const dayMs = 86_400_000;
const signature = "0".repeat(128);
const nonceHash = hashSecret("seeded");

export function seedRegistrations(location: StoreLocation, mesh: RegistrarMesh, rows: number): Promise<void> {
  return location.kind === "sqlite" ? seedSqlite(location.path, mesh, rows) : seedPostgres(location.url, mesh, rows);
}

async function seedSqlite(path: string, mesh: RegistrarMesh, rows: number): Promise<void> {
  const db = new DatabaseSync(path);
  db.exec("PRAGMA cache_size = -262144");
  db.function("digest", { varargs: true, deterministic: true }, (...fields) =>
    sha256.bytes(lengthPrefixed(fields.map(String))),
  );
  const { operation, target, artifact_hash } = benchEffect;
  const id = sqliteSeededId("time_ordered");
  const given = {
    rows,
    mesh: mesh.id,
    owner: mesh.keys.ed25519.public_key,
    operation,
    target,
    artifact: artifact_hash,
    version: registrarProtocolVersion,
    now: Date.now(),
  };
  const numbers =
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < CAST(:rows AS INTEGER))";
  const run = (text: string, more: Record<string, string | number | Uint8Array> = {}) => {
    const all: Record<string, string | number | Uint8Array> = { ...given, ...more };
    const used = Object.entries(all).filter(([name]) => new RegExp(`:${name}\\b`).test(text));
    db.prepare(text).run(Object.fromEntries(used));
  };
  db.exec("BEGIN IMMEDIATE");
  run(
    `${numbers} INSERT INTO registrar_approval (mesh_id, approval_id, owner_pubkey, operation, target, artifact_hash,
       run_id, purpose, logical_request_key, not_before, not_after, signature, nonce_hash, approved_at, revoked_at)
     SELECT :mesh, ${id}, :owner, :operation, :target, :artifact, ${id}, 'register', NULL, :now, :now + ${dayMs},
       :signature, :nonce, :now, NULL FROM n`,
    { signature, nonce: nonceHash },
  );
  run(
    `${numbers} INSERT INTO registrar_consume (mesh_id, logical_request_key, protocol_version, replay_key, effect_key,
       operation, target, artifact_hash, run_id, binding, approval_id, attempt_id, registration_id, member_pubkey,
       consumed_at)
     SELECT :mesh, ${id}, :version, digest(:version, ${id}, :operation, :target, :artifact, :owner, ${id}),
       digest(:operation, :target, :artifact, ${id}), :operation, :target, :artifact, ${id}, :owner, ${id}, :attempt,
       ${sqliteRegistrationId}, :owner, :now FROM n`,
    { attempt: benchAttempt },
  );
  run(
    `${numbers} INSERT INTO registrar_registration (mesh_id, logical_request_key, registration_id, operation, target,
       artifact_hash, run_id, binding, registered_by, registered_at)
     SELECT :mesh, ${id}, ${sqliteRegistrationId}, :operation, :target, :artifact, ${id}, :owner, :owner, :now FROM n`,
  );
  run(
    `${numbers} INSERT INTO registrar_verification (mesh_id, logical_request_key, state, verifier, reasons, verified_at)
     SELECT :mesh, ${id}, 'registered_closed', 'built-in', '[]', :now FROM n`,
  );
  db.exec("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
}

/** UUIDs of version 7, in the order of their numbers and before every one that is made now. */
const sqliteRegistrationId = "printf('00000000-%04x-7%03x-8000-000000000000', i / 4096, i % 4096)";
const postgresRegistrationId =
  "('00000000-' || lpad(to_hex(i / 4096), 4, '0') || '-7' || lpad(to_hex(i % 4096), 3, '0') || '-8000-000000000000')::uuid";

const postgresDigest = (...fields: string[]) =>
  `sha256(${fields.map((field) => `int4send(octet_length(${field})) || convert_to(${field}, 'UTF8')`).join(" || ")})`;

async function seedPostgres(url: string, mesh: RegistrarMesh, rows: number): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const owner = mesh.keys.ed25519.public_key;
  const quoted = (text: string) => client.escapeLiteral(text);
  const { operation, target, artifact_hash: artifact } = benchEffect;
  const id = postgresSeededId("time_ordered");
  const from = `FROM generate_series(0, ${rows} - 1) AS i`;
  const meshId = `${quoted(mesh.id)}::uuid`;
  const [op, to, hash, by, version] = [operation, target, artifact, owner, registrarProtocolVersion].map(quoted);
  if (op === undefined || to === undefined || hash === undefined || by === undefined || version === undefined) return;
  try {
    await client.query("BEGIN");
    await client.query(
      `INSERT INTO mesh.registrar_approval (mesh_id, approval_id, owner_pubkey, operation, target, artifact_hash, run_id,
         purpose, not_before, not_after, signature, nonce_hash, approved_at)
       SELECT ${meshId}, ${id}, ${by}, ${op}, ${to}, ${hash}, ${id}, 'register', $1::bigint, $1::bigint + ${dayMs}, $2, $3,
         now() ${from}`,
      [Date.now(), signature, nonceHash],
    );
    await client.query(
      `INSERT INTO mesh.registrar_consume (mesh_id, logical_request_key, protocol_version, replay_key, effect_key,
         operation, target, artifact_hash, run_id, binding, approval_id, attempt_id, registration_id, member_pubkey,
         consumed_at)
       SELECT ${meshId}, ${id}, ${version}, ${postgresDigest(version, id, op, to, hash, by, id)},
         ${postgresDigest(op, to, hash, id)}, ${op}, ${to}, ${hash}, ${id}, ${by}, ${id}, $1, ${postgresRegistrationId},
         ${by}, now() ${from}`,
      [benchAttempt],
    );
    await client.query(
      `INSERT INTO mesh.registrar_registration (mesh_id, logical_request_key, registration_id, operation, target,
         artifact_hash, run_id, binding, registered_by, registered_at)
       SELECT ${meshId}, ${id}, ${postgresRegistrationId}, ${op}, ${to}, ${hash}, ${id}, ${by}, ${by}, now() ${from}`,
    );
    await client.query(
      `INSERT INTO mesh.registrar_verification (mesh_id, logical_request_key, state, verifier, reasons, verified_at)
       SELECT ${meshId}, ${id}, 'registered_closed', 'built-in', '[]', now() ${from}`,
    );
    await client.query("COMMIT");
    // What the server would do by itself in the middle of a round.
    await client.query(
      "VACUUM (ANALYZE) mesh.registrar_approval, mesh.registrar_consume, mesh.registrar_registration, mesh.registrar_verification",
    );
    await client.query("CHECKPOINT");
  } finally {
    await client.end();
  }
}

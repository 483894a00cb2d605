// The broker's storage alone on SQLite: look an id up and insert the rows of its accept with the limiter's, so many
// sends per transaction, in a bare loop over node:sqlite. The file has the product's own migrations. Argument: its path.
import { randomBytes } from "node:crypto";
import process from "node:process";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { openDurableFile } from "../layers/durable-file.ts";
import { createClientIds } from "../load/client-ids.ts";
import { Latencies } from "../load/latencies.ts";
import { serveOrders } from "../processes/orders.ts";
import { benchTopic, bodyBytes } from "./bench-meshes.ts";
import type { RowsOrder, RowsResult } from "./rows-order.ts";

/** As many as the product puts into one transaction at most. */
const sendsPerTransactionMax = 256;
const windowMs = 60_000;
const retentionMs = 365 * 86_400_000;

const [path] = process.argv.slice(2);
if (path === undefined) throw new Error("give the path of the file");
const db = openDurableFile(path);

const begin = db.prepare("BEGIN IMMEDIATE");
const commit = db.prepare("COMMIT");
const select = db.prepare("SELECT 1 FROM client_message_dedupe WHERE mesh_id = ? AND client_message_id = ?");
const insertDedupe = db.prepare(`INSERT INTO client_message_dedupe (mesh_id, client_message_id, broker_message_id,
  request_fingerprint, destination_kind, destination_ref, sender_pubkey, history_id, first_seen_at, expires_at)
  VALUES (?, ?, ?, ?, 'topic', ?, ?, ?, ?, ?)`);
const insertMessage = db.prepare(`INSERT INTO topic_message (mesh_id, id, client_message_id, topic, sender_pubkey,
  envelope_version, body, meta, priority, reply_to_id, created_at, history_id)
  VALUES (?, ?, ?, ?, ?, '1', ?, '', 'next', NULL, ?, ?)`);
const insertHistory = db.prepare(`INSERT INTO message_history (mesh_id, history_id, broker_message_id,
  client_message_id, destination_kind, destination_ref, sender_pubkey, accepted_at)
  VALUES (?, ?, ?, ?, 'topic', ?, ?, ?)`);
const insertDelivery = db.prepare(
  "INSERT INTO delivery_queue (mesh_id, history_id, recipient_pubkey, broker_message_id) VALUES (?, ?, ?, ?)",
);
const insertCounted = db.prepare(
  "INSERT INTO rate_limit_id (mesh_id, window_start, client_message_id) VALUES (?, ?, ?)",
);
const takeHistory = db.prepare(`INSERT INTO mesh_history_counter (mesh_id, last_history_id) VALUES (?1, ?2)
  ON CONFLICT (mesh_id) DO UPDATE SET last_history_id = last_history_id + ?2 RETURNING last_history_id`);
const spend = db.prepare(`INSERT INTO rate_limit_window (mesh_id, window_start, used) VALUES (?1, ?2, ?3)
  ON CONFLICT (mesh_id, window_start) DO UPDATE SET used = used + ?3`);

const nextMessageId = createUuidV7Generator({ nowMs: Date.now, randomBytes });
const fingerprint = new Uint8Array(32).fill(0xa5);
const body = new Uint8Array(bodyBytes).fill(0x6d);

type Send = readonly [clientId: string, messageId: string];

function insertSends(mesh: RowsOrder["meshes"][number], sends: readonly Send[]): void {
  const nowMs = Date.now();
  const window = nowMs - (nowMs % windowMs);
  const last = takeHistory.get(mesh.id, sends.length)?.last_history_id;
  let historyId = Number(last) - sends.length;
  spend.run(mesh.id, window, sends.length);
  for (const [clientId, messageId] of sends) {
    if (select.get(mesh.id, clientId) !== undefined) throw new Error(`the id ${clientId} came twice`);
    historyId += 1;
    insertCounted.run(mesh.id, window, clientId);
    const { id, sender } = mesh;
    const expiresAt = nowMs + retentionMs;
    insertDedupe.run(id, clientId, messageId, fingerprint, benchTopic, sender, historyId, nowMs, expiresAt);
    insertMessage.run(id, messageId, clientId, benchTopic, sender, body, nowMs, historyId);
    insertHistory.run(id, historyId, messageId, clientId, benchTopic, sender, nowMs);
    for (const recipient of mesh.subscribers) insertDelivery.run(id, historyId, recipient, messageId);
  }
}

function insertForAWhile(order: RowsOrder): RowsResult {
  const nextId = createClientIds(order.ids);
  const perTransaction = Math.min(order.outstanding, sendsPerTransactionMax);
  const perMesh = Math.ceil(perTransaction / order.meshes.length);
  const times = new Latencies();
  let busyMs = 0;
  let rows = 0;
  while (busyMs < order.durationMs) {
    // Making ids is not timed.
    const batches = order.meshes.map((mesh) => ({
      mesh,
      sends: Array.from({ length: perMesh }, (): Send => [nextId(), nextMessageId()]),
    }));
    const startedAtMs = performance.now();
    begin.run();
    for (const { mesh, sends } of batches) insertSends(mesh, sends);
    commit.run();
    const elapsedMs = performance.now() - startedAtMs;
    times.add(elapsedMs);
    busyMs += elapsedMs;
    rows += perMesh * order.meshes.length;
  }
  return { answered: rows, perSecond: rows / (busyMs / 1_000), ...times.figures() };
}

serveOrders<RowsOrder, RowsResult>(insertForAWhile);

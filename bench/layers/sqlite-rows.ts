// The storage layer alone: look an id up, insert its row, so many per transaction, in a bare loop over node:sqlite. The
// file is fresh, the tables are the product's own, and a COMMIT that returned is on disk. Making ids is not timed.
import { mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { loadMigrations } from "@claudemesh/storage/migrations";
import { createClientIds, type IdOrder } from "../load/client-ids.ts";
import { Latencies, type LatencyFigures } from "../load/latencies.ts";
import { serveOrders } from "../processes/orders.ts";
import { openDurableFile } from "./durable-file.ts";

export type RowShape = {
  readonly to: string;
  readonly kind: "topic" | "dm";
  readonly ref: string;
  readonly envelopeVersion: "1" | "3";
  readonly payloadBytes: number;
};

export type SqliteOrder = {
  /** A file in a folder of its own, both made here and removed at the end. */
  readonly path: string;
  readonly rowsPerTransaction: number;
  readonly durationMs: number;
  readonly ids: IdOrder;
  readonly row: RowShape;
};

/** Latencies are those of whole transactions. */
export type SqliteResult = LatencyFigures & { readonly rows: number; readonly perSecond: number };

const outboxMigrations = new URL("../../packages/daemon/src/stores/sqlite/migrations/outbox/", import.meta.url);

const selectSql = `SELECT id, request_fingerprint, broker_message_id, history_id, to_address, destination_kind,
    destination_ref, status, last_error FROM outbox WHERE client_message_id = ?`;
const insertSql = `INSERT INTO outbox (id, client_message_id, request_fingerprint, wire_fingerprint, to_address,
    destination_kind, destination_ref, priority, meta, reply_to_id, envelope_version, enqueued_at, next_attempt_at,
    status, payload)
  VALUES (?, ?, ?, ?, ?, ?, ?, 'next', '', NULL, ?, ?, ?, 'pending', ?)`;

function openFreshOutbox(path: string): DatabaseSync {
  mkdirSync(dirname(path), { recursive: true });
  const db = openDurableFile(path);
  for (const { sql } of loadMigrations("daemon-outbox", outboxMigrations)) db.exec(sql);
  return db;
}

function measureRows(order: SqliteOrder): SqliteResult {
  const db = openFreshOutbox(order.path);
  try {
    const latencies = insertForAWhile(db, order);
    const rows = latencies.times.count * order.rowsPerTransaction;
    const stored = db.prepare("SELECT count(*) AS rows FROM outbox").get()?.rows;
    if (stored !== rows) throw new Error(`${stored} rows are stored of ${rows} that were inserted`);
    return { rows, perSecond: rows / (latencies.busyMs / 1_000), ...latencies.times.figures() };
  } finally {
    db.close();
    rmSync(dirname(order.path), { recursive: true });
  }
}

function insertForAWhile(db: DatabaseSync, order: SqliteOrder): { times: Latencies; busyMs: number } {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const select = db.prepare(selectSql);
  const insert = db.prepare(insertSql);
  const commit = db.prepare("COMMIT");
  const nextId = createClientIds("time_ordered");
  const nextClientId = createClientIds(order.ids);
  const { to, kind, ref, envelopeVersion, payloadBytes } = order.row;
  const fingerprint = new Uint8Array(32).fill(0xa5);
  const payload = new Uint8Array(payloadBytes).fill(0x6d);
  const times = new Latencies();
  let busyMs = 0;
  while (busyMs < order.durationMs) {
    const ids = Array.from({ length: order.rowsPerTransaction }, () => [nextId(), nextClientId()] as const);
    const startedAtMs = performance.now();
    begin.run();
    for (const [id, clientId] of ids) {
      if (select.get(clientId) !== undefined) throw new Error(`the id ${clientId} came twice`);
      const nowMs = Date.now();
      insert.run(id, clientId, fingerprint, fingerprint, to, kind, ref, envelopeVersion, nowMs, nowMs, payload);
    }
    commit.run();
    const elapsedMs = performance.now() - startedAtMs;
    times.add(elapsedMs);
    busyMs += elapsedMs;
  }
  return { times, busyMs };
}

serveOrders<SqliteOrder, SqliteResult>(measureRows);

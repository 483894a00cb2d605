// How many messages each member sent in each hour and each topic has had, on PostgreSQL: counted from committed history beside
// the accepts. The cursor is locked and moves in the same transaction, so that a message is counted once.
import type { Postgres, PostgresTransaction } from "@claudemesh/storage/postgres";
import { ratesKeptFromMs, rateWindowStartMs } from "../../core/rate-window.ts";
import type { SweepTally } from "../sweep-tally.ts";
import type { Reading } from "./stored-accepts.ts";

const rowsPerStep = 1_000;

/** Counts one step at each call; false where nothing was left to count. Meshes take turns, so that a busy one starves none. */
export function createCountNext(postgres: Postgres): () => Promise<boolean> {
  let lastMeshId: string | undefined;
  return async () => {
    const isBehind = await hasUncounted({ query: (text, values) => postgres.read(text, values) });
    lastMeshId = isBehind ? await postgres.transaction((tx) => countNext(tx, lastMeshId)) : undefined;
    return lastMeshId !== undefined;
  };
}

/** Checks first, so that nothing is locked while there is nothing to do. */
async function hasUncounted(db: Reading): Promise<boolean> {
  const rows = await db.query(
    `SELECT 1 FROM mesh.mesh_history_counter c LEFT JOIN mesh.rate_limit_counter_cursor r ON r.mesh_id = c.mesh_id
     WHERE c.last_history_id > coalesce(r.counted_up_to, 0) LIMIT 1`,
  );
  return rows.length > 0;
}

/** Returns the mesh whose messages were counted; undefined where nothing was left, or other brokers have locked what is left. */
async function countNext(tx: PostgresTransaction, after: string | undefined): Promise<string | undefined> {
  await tx.execute(
    `INSERT INTO mesh.rate_limit_counter_cursor (mesh_id, counted_up_to)
     SELECT c.mesh_id, 0 FROM mesh.mesh_history_counter c
     WHERE NOT EXISTS (SELECT 1 FROM mesh.rate_limit_counter_cursor r WHERE r.mesh_id = c.mesh_id)
     ORDER BY c.mesh_id ON CONFLICT DO NOTHING`,
  );
  const [mesh] = await tx.query<{ mesh_id: string; counted_up_to: number; last_history_id: number }>(
    `SELECT r.mesh_id, r.counted_up_to, c.last_history_id
     FROM mesh.rate_limit_counter_cursor r JOIN mesh.mesh_history_counter c ON c.mesh_id = r.mesh_id
     WHERE c.last_history_id > r.counted_up_to
     ORDER BY coalesce(r.mesh_id <= $1::uuid, false), r.mesh_id LIMIT 1 FOR UPDATE OF r SKIP LOCKED`,
    [after ?? null],
  );
  if (mesh === undefined) return undefined;
  const rows = await tx.query<{ history_id: number; sender_pubkey: string; accepted_at: Date; topic: string | null }>(
    `SELECT history_id, sender_pubkey, accepted_at,
       CASE WHEN destination_kind = 'topic' THEN destination_ref END AS topic
     FROM mesh.message_history WHERE mesh_id = $1 AND history_id > $2 AND history_id <= $3 ORDER BY history_id LIMIT $4`,
    [mesh.mesh_id, mesh.counted_up_to, mesh.last_history_id, rowsPerStep],
  );
  const windows = rows.map((row) => new Date(rateWindowStartMs(row.accepted_at.getTime())));
  await tx.execute(
    `INSERT INTO mesh.rate_limit_counter AS r (mesh_id, window_start, sender_pubkey, accepted)
     SELECT $1, n.window_start, n.sender_pubkey, count(*)
     FROM unnest($2::timestamptz[], $3::text[]) AS n (window_start, sender_pubkey)
     GROUP BY n.window_start, n.sender_pubkey
     ON CONFLICT (mesh_id, window_start, sender_pubkey) DO UPDATE SET accepted = r.accepted + excluded.accepted`,
    [mesh.mesh_id, windows, rows.map((row) => row.sender_pubkey)],
  );
  await tx.execute(
    `INSERT INTO mesh.topic_counter AS c (mesh_id, topic, messages, last_message_at)
     SELECT $1, n.topic, count(*), max(n.accepted_at)
     FROM unnest($2::text[], $3::timestamptz[]) AS n (topic, accepted_at) WHERE n.topic IS NOT NULL
     GROUP BY n.topic ORDER BY n.topic
     ON CONFLICT (mesh_id, topic) DO UPDATE SET messages = c.messages + excluded.messages,
       last_message_at = greatest(c.last_message_at, excluded.last_message_at)`,
    [mesh.mesh_id, rows.map((row) => row.topic), rows.map((row) => row.accepted_at)],
  );
  // Where rows are missing from here to the end, retention has been faster, and there is nothing left to count.
  const upTo = rows.length === rowsPerStep ? rows.at(-1)?.history_id : mesh.last_history_id;
  await tx.execute("UPDATE mesh.rate_limit_counter_cursor SET counted_up_to = $2 WHERE mesh_id = $1", [
    mesh.mesh_id,
    upTo,
  ]);
  return mesh.mesh_id;
}

export async function forgetRates(
  tx: PostgresTransaction,
  meshId: string,
  nowMs: number,
  tally: SweepTally,
): Promise<void> {
  const forgotten = await tx.execute(
    `DELETE FROM mesh.rate_limit_counter r
     USING (SELECT window_start, sender_pubkey FROM mesh.rate_limit_counter
       WHERE mesh_id = $1 AND window_start < $2 ORDER BY window_start LIMIT $3 FOR UPDATE SKIP LOCKED) AS e
     WHERE r.mesh_id = $1 AND r.window_start = e.window_start AND r.sender_pubkey = e.sender_pubkey`,
    [meshId, new Date(ratesKeptFromMs(nowMs)), rowsPerStep],
  );
  tally.addUpTo("rate_counters", forgotten, rowsPerStep);
}

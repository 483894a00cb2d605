// How many messages each member sent in each hour and each topic has had, on SQLite: counted from committed history beside the accepts. The
// cursor moves in the same transaction, so that a message is counted once.
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { ratesKeptFromMs, rateWindowStartMs } from "../../core/rate-window.ts";
import type { SweepTally } from "../sweep-tally.ts";

const rowsPerStep = 256;

/** Counts one step at each call; false: there was nothing left. Meshes take turns, so that a busy one starves none. */
export function createCountNext(db: Sqlite, commit: GroupCommit): () => Promise<boolean> {
  let lastMeshId = "";
  return async () => {
    // Checks first, so that the write lock is not taken while there is nothing to do.
    const isBehind = selectUncounted(db, lastMeshId) !== undefined;
    const counted = isBehind ? await commit.submit((tx) => countNext(tx, lastMeshId)) : undefined;
    lastMeshId = counted ?? "";
    return counted !== undefined;
  };
}

type Uncounted = { meshId: string; countedUpTo: number };

/** The next mesh behind that one, or the first of all. */
function selectUncounted(db: Sqlite, after: string): Uncounted | undefined {
  const select = (side: ">" | "<=") =>
    db
      .sql<Uncounted>(
        `SELECT c.mesh_id AS meshId, coalesce(r.counted_up_to, 0) AS countedUpTo
         FROM mesh_history_counter c LEFT JOIN rate_limit_counter_cursor r ON r.mesh_id = c.mesh_id
         WHERE c.mesh_id ${side} ? AND c.last_history_id > coalesce(r.counted_up_to, 0) ORDER BY c.mesh_id LIMIT 1`,
      )
      .get(after);
  return select(">") ?? select("<=");
}

/** Returns whose messages were counted. */
function countNext(tx: Sqlite, after: string): string | undefined {
  const uncounted = selectUncounted(tx, after);
  if (uncounted === undefined) return undefined;
  const { meshId, countedUpTo } = uncounted;
  const rows = tx
    .sql<{ history_id: number; sender_pubkey: string; accepted_at: number; topic: string | null }>(
      `SELECT history_id, sender_pubkey, accepted_at,
         CASE WHEN destination_kind = 'topic' THEN destination_ref END AS topic
       FROM message_history WHERE mesh_id = ? AND history_id > ? ORDER BY history_id LIMIT ?`,
    )
    .all(meshId, countedUpTo, rowsPerStep);
  const count = tx.sql(
    `INSERT INTO rate_limit_counter (mesh_id, window_start, sender_pubkey, accepted) VALUES (?, ?, ?, 1)
     ON CONFLICT (mesh_id, window_start, sender_pubkey) DO UPDATE SET accepted = accepted + 1`,
  );
  const countTopic = tx.sql(
    `INSERT INTO topic_counter (mesh_id, topic, messages, last_message_at) VALUES (?, ?, 1, ?)
     ON CONFLICT (mesh_id, topic) DO UPDATE
     SET messages = messages + 1, last_message_at = max(last_message_at, excluded.last_message_at)`,
  );
  for (const row of rows) {
    count.run(meshId, rateWindowStartMs(row.accepted_at), row.sender_pubkey);
    if (row.topic !== null) countTopic.run(meshId, row.topic, row.accepted_at);
  }
  // Where rows are missing from here to the end, retention has been faster, and there is nothing left to count.
  const last = rows.length === rowsPerStep ? rows.at(-1)?.history_id : selectLastHistoryId(tx, meshId);
  tx.sql(
    `INSERT INTO rate_limit_counter_cursor (mesh_id, counted_up_to) VALUES (?, ?)
     ON CONFLICT (mesh_id) DO UPDATE SET counted_up_to = excluded.counted_up_to`,
  ).run(meshId, last ?? countedUpTo);
  return meshId;
}

function selectLastHistoryId(tx: Sqlite, meshId: string): number | undefined {
  return tx
    .sql<{ last_history_id: number }>("SELECT last_history_id FROM mesh_history_counter WHERE mesh_id = ?")
    .get(meshId)?.last_history_id;
}

export function forgetRates(tx: Sqlite, meshId: string, nowMs: number, tally: SweepTally): void {
  const { changes } = tx
    .sql(
      `DELETE FROM rate_limit_counter WHERE mesh_id = ?1 AND (window_start, sender_pubkey) IN
         (SELECT r.window_start, r.sender_pubkey FROM rate_limit_counter r
          WHERE r.mesh_id = ?1 AND r.window_start < ?2 ORDER BY r.window_start LIMIT ?3)`,
    )
    .run(meshId, ratesKeptFromMs(nowMs), rowsPerStep);
  tally.addUpTo("rate_counters", changes, rowsPerStep);
}

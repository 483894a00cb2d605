// BrokersStore on SQLite.
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { type BrokersStore, brokerRowKeptMs, brokersListedMax } from "../../ports/brokers.ts";

export function createSqliteBrokersStore(db: Sqlite, commit: GroupCommit): BrokersStore {
  return {
    announce: ({ id, publicUrl }, nowMs, expiresAtMs) =>
      commit.submit((tx) => {
        tx.sql("DELETE FROM broker_lease WHERE expires_at < ? AND broker_id <> ?").run(nowMs - brokerRowKeptMs, id);
        tx.sql(
          `INSERT INTO broker_lease (broker_id, public_url, seen_at, expires_at) VALUES (?, ?, ?, ?)
           ON CONFLICT (broker_id) DO UPDATE
           SET public_url = excluded.public_url, seen_at = excluded.seen_at, expires_at = excluded.expires_at`,
        ).run(id, publicUrl ?? null, nowMs, expiresAtMs);
      }),
    withdraw: (brokerId) =>
      commit.submit((tx) => {
        tx.sql("UPDATE broker_lease SET expires_at = seen_at WHERE broker_id = ?").run(brokerId);
      }),
    listUrls: async (nowMs) =>
      db
        .sql<{ public_url: string }>(
          `SELECT DISTINCT public_url FROM broker_lease WHERE expires_at > ? AND public_url IS NOT NULL
           ORDER BY public_url LIMIT ?`,
        )
        .all(nowMs, brokersListedMax)
        .map((row) => row.public_url),
    lastSeenMs: async () =>
      db.sql<{ last: number | null }>("SELECT max(seen_at) AS last FROM broker_lease").get()?.last ?? 0,
  };
}

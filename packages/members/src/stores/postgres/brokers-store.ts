// BrokersStore on PostgreSQL.
import type { Postgres } from "@claudemesh/storage/postgres";
import { type BrokersStore, brokerRowKeptMs, brokersListedMax } from "../../ports/brokers.ts";

export function createPostgresBrokersStore(postgres: Postgres): BrokersStore {
  return {
    announce: ({ id, publicUrl }, nowMs, expiresAtMs) =>
      postgres.transaction(async (tx) => {
        await tx.execute("DELETE FROM mesh.broker_lease WHERE expires_at < $1 AND broker_id <> $2", [
          new Date(nowMs - brokerRowKeptMs),
          id,
        ]);
        await tx.execute(
          `INSERT INTO mesh.broker_lease (broker_id, public_url, seen_at, expires_at) VALUES ($1, $2, $3, $4)
           ON CONFLICT (broker_id) DO UPDATE
           SET public_url = excluded.public_url, seen_at = excluded.seen_at, expires_at = excluded.expires_at`,
          [id, publicUrl ?? null, new Date(nowMs), new Date(expiresAtMs)],
        );
      }),
    withdraw: (brokerId) =>
      postgres.transaction(async (tx) => {
        await tx.execute("UPDATE mesh.broker_lease SET expires_at = seen_at WHERE broker_id = $1", [brokerId]);
      }),
    listUrls: async (nowMs) => {
      const rows = await postgres.read<{ public_url: string }>(
        `SELECT DISTINCT public_url COLLATE "C" AS public_url FROM mesh.broker_lease
         WHERE expires_at > $1 AND public_url IS NOT NULL ORDER BY 1 LIMIT $2`,
        [new Date(nowMs), brokersListedMax],
      );
      return rows.map((row) => row.public_url);
    },
    lastSeenMs: async () => {
      const [row] = await postgres.read<{ last: number | null }>(
        "SELECT (extract(epoch FROM max(seen_at)) * 1000)::float8 AS last FROM mesh.broker_lease",
      );
      return row?.last ?? 0;
    },
  };
}

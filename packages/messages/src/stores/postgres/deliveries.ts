// Deliveries on PostgreSQL: what a recipient has not confirmed, confirming it, and which recipients have something waiting.
// Why: docs/tuning-log.md#recipients-of-a-message-are-read-together.
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import { Batcher, questions, transactions } from "@claudemesh/storage/batcher";
import type { Postgres, PostgresTransaction } from "@claudemesh/storage/postgres";
import { type StoredItem, toHistoryItem } from "../../core/stored-item.ts";
import type { DeliveryStore } from "../../ports.ts";
import type { Reading } from "./stored-accepts.ts";
import { hasMessage, itemColumns, joinMessages, selectItems } from "./stored-items.ts";

/** A full page of each would be some thousands of messages. */
const pages = { ...questions, maxItems: 64, atOnce: 4 };

export function createDeliveryStore(postgres: Postgres, committed: Reading): DeliveryStore {
  const unsettled = new Batcher<UnsettledAsk, HistoryItem[]>(pages, {
    run: (asks) => selectUnsettledOf(committed, asks),
  });
  const settlings = new Batcher<Settling, void>(transactions, {
    run: async (batch) => {
      await postgres.transaction((tx) => settleInTransaction(tx, batch));
      return batch.map(() => undefined);
    },
  });
  return {
    unsettled: (meshId, recipient, after, limit) => unsettled.submit({ meshId, recipient, after, limit }),
    settle: (meshId, recipient, historyIds, nowMs) => settlings.submit({ meshId, recipient, historyIds, nowMs }),
  };
}

type UnsettledAsk = {
  readonly meshId: string;
  readonly recipient: string;
  readonly after: number;
  readonly limit: number;
};

/**
 * One page for each ask, in their order. Recipients of one message often wait for it together, so the first statement reads
 * which of them has which delivery, and each message is then read once for all of them.
 */
export async function selectUnsettledOf(db: Reading, asks: readonly UnsettledAsk[]): Promise<HistoryItem[][]> {
  const [only] = asks;
  if (asks.length === 1 && only !== undefined) return [await selectUnsettled(db, only)];
  const waiting = await selectUnsettledIds(db, asks);
  const idsByMesh = new Map<string, Set<number>>();
  for (const [index, { meshId }] of asks.entries()) {
    const ids = idsByMesh.get(meshId) ?? new Set<number>();
    for (const id of waiting[index] ?? []) ids.add(id);
    idsByMesh.set(meshId, ids);
  }
  const read = async ([meshId, ids]: [string, Set<number>]) =>
    [meshId, ids.size === 0 ? undefined : await selectItems(db, meshId, [...ids])] as const;
  const itemsByMesh = new Map(await Promise.all([...idsByMesh].map(read)));
  return Promise.all(
    asks.map((ask, index) => {
      const ids = waiting[index] ?? [];
      const items = ids.flatMap((id) => itemsByMesh.get(ask.meshId)?.get(id) ?? []);
      // A message that has just been removed, and left a page that looks like the last one.
      return items.length < ids.length ? selectUnsettled(db, ask) : items;
    }),
  );
}

// Planned for its values every time: a plan that was made while the table was empty might use the other index.
async function selectUnsettledIds(db: Reading, asks: readonly UnsettledAsk[]): Promise<number[][]> {
  const rows = await db.query<{ n: number; history_id: number }>(
    `SELECT a.n::int AS n, d.history_id
     FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::int[]) WITH ORDINALITY
       AS a (mesh_id, recipient, after_id, most, n)
     CROSS JOIN LATERAL (
       SELECT history_id FROM mesh.delivery_queue
       WHERE mesh_id = a.mesh_id AND recipient_pubkey = a.recipient AND history_id > a.after_id AND settled_at IS NULL
       ORDER BY history_id LIMIT a.most) AS d
     ORDER BY a.n, d.history_id`,
    [
      asks.map(({ meshId }) => meshId),
      asks.map(({ recipient }) => recipient),
      asks.map(({ after }) => after),
      asks.map(({ limit }) => limit),
    ],
  );
  const ids = asks.map((): number[] => []);
  for (const row of rows) ids[row.n - 1]?.push(row.history_id);
  return ids;
}

async function selectUnsettled(db: Reading, { meshId, recipient, after, limit }: UnsettledAsk): Promise<HistoryItem[]> {
  const rows = await db.query<StoredItem>(
    `SELECT ${itemColumns} FROM mesh.delivery_queue d
     JOIN mesh.message_history h ON h.mesh_id = d.mesh_id AND h.history_id = d.history_id
     ${joinMessages}
     WHERE d.mesh_id = $1 AND d.recipient_pubkey = $2 AND d.history_id > $3 AND d.settled_at IS NULL AND ${hasMessage}
     ORDER BY d.history_id LIMIT $4`,
    [meshId, recipient, after, limit],
  );
  return rows.map(toHistoryItem);
}

type Settling = {
  readonly meshId: string;
  readonly recipient: string;
  readonly historyIds: readonly number[];
  readonly nowMs: number;
};

/** Settles the recipient's own deliveries that are not settled; all others are ignored. */
async function settleInTransaction(tx: PostgresTransaction, settlings: readonly Settling[]): Promise<void> {
  const rows = settlings.flatMap(({ meshId, recipient, historyIds, nowMs }) =>
    historyIds.map((historyId) => ({ meshId, recipient, historyId, nowMs })),
  );
  await tx.execute(
    `UPDATE mesh.delivery_queue d SET settled_at = to_timestamp(s.now_ms / 1000), outcome = 'delivered'
     FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::float8[]) AS s (mesh_id, history_id, recipient, now_ms)
     WHERE d.mesh_id = s.mesh_id AND d.history_id = s.history_id AND d.recipient_pubkey = s.recipient
       AND d.settled_at IS NULL`,
    [
      rows.map((row) => row.meshId),
      rows.map((row) => row.historyId),
      rows.map((row) => row.recipient),
      rows.map((row) => row.nowMs),
    ],
  );
}

export type Recipient = { readonly meshId: string; readonly pubkey: string };

/** Those among the given recipients who have an unsettled delivery. */
export async function selectWaiting(db: Reading, recipients: readonly Recipient[]): Promise<Recipient[]> {
  return db.query<Recipient>(
    `SELECT r.mesh_id AS "meshId", r.pubkey
     FROM unnest($1::uuid[], $2::text[]) AS r (mesh_id, pubkey)
     WHERE EXISTS (SELECT 1 FROM mesh.delivery_queue d
       WHERE d.mesh_id = r.mesh_id AND d.recipient_pubkey = r.pubkey AND d.settled_at IS NULL)`,
    [recipients.map(({ meshId }) => meshId), recipients.map(({ pubkey }) => pubkey)],
  );
}

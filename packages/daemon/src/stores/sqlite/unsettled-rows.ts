// Rows that only the keys they were sealed and claimed with can bring to an end, for those who want to replace the keys.
import type { Sqlite } from "@claudemesh/storage/sqlite";

export type UnsettledCounts = {
  readonly pending: number;
  readonly inflight: number;
  /** Dead, and only the old member can ask the broker whether it has them. What was dismissed is nobody's question. */
  readonly dead_of_unknown_fate: number;
};

export function countUnsettled(db: Sqlite): UnsettledCounts {
  const count = (where: string) =>
    db.sql<{ rows: number }>(`SELECT count(*) AS rows FROM outbox WHERE ${where}`).get()?.rows ?? 0;
  return {
    pending: count("status = 'pending'"),
    inflight: count("status = 'inflight'"),
    dead_of_unknown_fate: count("status = 'dead' AND unanswered > 0 AND fenced = 0 AND dismissed_at IS NULL"),
  };
}

/** Sealed with keys that go away, a dead direct message could be requeued and never be opened: it is retired instead. */
export function abortSealedDead(db: Sqlite, nowMs: number): number {
  return db.transaction(
    () =>
      db
        .sql(
          `UPDATE outbox SET status = 'aborted', aborted_at = ?, aborted_by = 'remint'
           WHERE status = 'dead' AND envelope_version <> '1'`,
        )
        .run(nowMs).changes,
  );
}

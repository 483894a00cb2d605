// What a store holds, in numbers, for its operator. Counting reads every row, so a broker must not do it on the thread that
// serves.

export type MeshStats = {
  /** Rows by what they are; `deliveries_unsettled` and the like say in which state. */
  readonly rows: Readonly<Record<string, number>>;
  readonly lastHistoryId: number;
  /** When the oldest message was accepted that a recipient has not confirmed; undefined where all have. */
  readonly oldestUnsettledAtMs: number | undefined;
  /** When the oldest message was accepted that can be read. */
  readonly oldestMessageAtMs: number | undefined;
  /** Accepted messages, as far as they are counted; by full hours. */
  readonly acceptedLastHour: number;
  readonly acceptedLastDay: number;
};

export type StatsStore = {
  readonly ofMesh: (meshId: string, nowMs: number) => Promise<MeshStats>;
  /** On disk, with indexes and what is kept of removed rows. */
  readonly sizeBytes: () => Promise<number>;
};

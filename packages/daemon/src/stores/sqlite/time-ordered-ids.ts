// ULIDs for rows: they grow for as long as the database lives, also when the clock was set back between two starts.
import { createUlidGenerator, ulidTimeMs } from "@claudemesh/protocol/ids";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { Chance } from "../../ports.ts";
import { systemChance } from "../../system-chance.ts";

/** Begins after the largest id in the table, and after `above` where rows that had larger ones are gone. */
export function createRowIds(
  db: Sqlite,
  table: "outbox" | "inbox",
  nowMs: () => number,
  above: string | undefined = undefined,
  { randomBytes }: Pick<Chance, "randomBytes"> = systemChance,
): () => string {
  const last = db.sql<{ id: string | null }>(`SELECT max(id) AS id FROM ${table}`).get()?.id;
  const lastMs = Math.max(ulidTimeMs(last ?? "") ?? -1, ulidTimeMs(above ?? "") ?? -1);
  return createUlidGenerator({
    nowMs: () => Math.max(nowMs(), lastMs + 1),
    randomBytes: createRandomPool(randomBytes),
  });
}

/** One call for many ids: asking the system for ten bytes at a time costs more than the ids themselves. */
function createRandomPool(randomBytes: Chance["randomBytes"]): Chance["randomBytes"] {
  let pool = randomBytes(4_096);
  let used = 0;
  return (length) => {
    if (used + length > pool.length) {
      pool = randomBytes(4_096);
      used = 0;
    }
    const bytes = pool.subarray(used, used + length);
    used += length;
    return bytes;
  };
}

/** No ULID made at that millisecond or later is smaller. */
export function lowestUlidAt(timeMs: number): string {
  const zeroes = { nowMs: () => Math.max(0, timeMs), randomBytes: (length: number) => new Uint8Array(length) };
  return createUlidGenerator(zeroes)();
}

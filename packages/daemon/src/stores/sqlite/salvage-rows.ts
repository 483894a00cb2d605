// Copying what can be read of a damaged outbox into a fresh one, row by row: the fresh database's own rules refuse what
// is no row. Which file is which, and when one replaces the other, is decided by services/salvage-outbox.ts.
import type { DatabaseSync } from "node:sqlite";
import type { Sha256 } from "@claudemesh/protocol/messages/fingerprint";
import { StorageError } from "@claudemesh/storage/errors";
import type { Sqlite, SqliteValue } from "@claudemesh/storage/sqlite";
import { prepareSalvaged, type Salvaged, type SalvagedRow } from "../../core/salvaged-row.ts";
import { OperatorRefused } from "../../operator-refused.ts";
import { type DamagedTable, readDamagedTable } from "./read-damaged.ts";

export type Salvage = {
  readonly rowsRead: number;
  /** Rows that are known to have been there and are not any more. There may have been others. */
  readonly rowsLost: number;
  readonly lostIds: readonly string[];
  readonly tombstonesRead: number;
  readonly tombstonesLost: number;
  /** Rows that go on with an unknown fate. */
  readonly fateUnknown: number;
};

type CopyResult = { readonly read: number; readonly lost: number; readonly lostIds: readonly string[] };
type Prepare = (row: SalvagedRow) => Salvaged;

const rowsPerTransaction = 1_000;
const label = "client_message_id";

export function salvageRows(source: DatabaseSync, target: Sqlite, nowMs: number, sha256: Sha256): Salvage {
  let fateUnknown = 0;
  const rows = copyTable(source, target, { name: "outbox", key: "rowid", label }, (row) => {
    const prepared = prepareSalvaged(row, nowMs, sha256);
    if (prepared.type === "fate_unknown") fateUnknown++;
    return prepared;
  });
  const keep: Prepare = (row) => ({ type: "unchanged", row });
  const tombstones = copyTable(source, target, { name: "outbox_tombstone", key: label, label }, keep);
  // Both come back from the broker; until then what is left of them serves.
  copyTable(source, target, { name: "member", key: "pubkey" }, keep);
  copyTable(source, target, { name: "daemon_state", key: "key" }, keep);
  copyTable(source, target, { name: "peer_pin", key: "name" }, keep);
  copyTable(source, target, { name: "outbox_removed", key: label }, keep);
  return {
    rowsRead: rows.read,
    rowsLost: rows.lost,
    lostIds: rows.lostIds,
    tombstonesRead: tombstones.read,
    tombstonesLost: tombstones.lost,
    fateUnknown,
  };
}

function copyTable(source: DatabaseSync, target: Sqlite, table: DamagedTable, prepare: Prepare): CopyResult {
  const found = readDamagedTable(source, table);
  if (found.type === "no_table") return { read: 0, lost: 0, lostIds: [] };
  const { columns, rows, unreadable } = found;
  const insert = insertSql(target, table.name, columns);
  const bad: string[] = [];
  let read = 0;
  let unnamed = 0;
  for (const batch of inBatches(rows)) {
    target.transaction(() => {
      for (const row of batch) {
        const prepared = prepare(row);
        if (prepared.type !== "damaged" && insertRow(target, insert, columns, prepared.row)) read++;
        else if (typeof row[label] === "string") bad.push(row[label]);
        else unnamed++;
      }
    });
  }
  const gone = unreadable();
  return { read, lost: gone.count + bad.length + unnamed, lostIds: [...new Set([...gone.labels, ...bad])] };
}

/** A file that a newer build has written holds columns that this one would drop without a word. */
function insertSql(target: Sqlite, table: string, columns: readonly string[]): string {
  const known = new Set(
    target
      .sql<{ name: string }>(`PRAGMA table_info("${table}")`)
      .all()
      .map(({ name }) => name),
  );
  const foreign = columns.find((column) => !known.has(column));
  if (foreign !== undefined) {
    const message = `The damaged outbox has a column ${table}.${foreign} that this build does not know: recover it with the newer build that wrote it.`;
    throw new OperatorRefused("schema_newer", message);
  }
  const list = columns.map((column) => `"${column}"`).join(", ");
  return `INSERT INTO "${table}" (${list}) VALUES (${columns.map(() => "?").join(", ")})`;
}

function insertRow(target: Sqlite, sql: string, columns: readonly string[], row: SalvagedRow): boolean {
  try {
    target.sql(sql).run(...columns.map((column) => row[column] as SqliteValue));
    return true;
  } catch (error) {
    if (error instanceof StorageError && error.kind === "constraint") return false;
    throw error;
  }
}

function* inBatches<T>(items: Iterable<T>): Generator<T[]> {
  let batch: T[] = [];
  for (const item of items) {
    batch.push(item);
    if (batch.length < rowsPerTransaction) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

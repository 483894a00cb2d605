// One database file and what can go wrong with it. It outlives the processes that use it; what was committed is there,
// what was not is gone.
import { StorageError } from "@claudemesh/storage/errors";
import type { Migration } from "@claudemesh/storage/migrations";
import { openSqlite, Sqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import type { CommitPhase } from "../core/plan.ts";

export type DiskFault = {
  readonly phase: CommitPhase;
  /** Called at this point; the transaction then fails with this. */
  readonly strike: () => StorageError;
  /** So many commits go well, then so many do not. */
  skip: number;
  commits: number;
};

type Touched = Map<string, Set<string>>;

export class Disk extends Sqlite {
  #fault: DiskFault | undefined;
  readonly #listeners: (() => void)[] = [];
  #touched: Touched | undefined;

  arm(fault: DiskFault | undefined): void {
    this.#fault = fault;
  }

  /**
   * Reports after each commit, before any other listener hears of it, which rows of the table were written. A row is
   * reported by what the SQL expression over `row` gives for it. What was rolled back may be among them.
   */
  onWritten(table: string, expression: string, listener: (keys: readonly string[]) => void): void {
    this.#touched ??= this.#trackTouched();
    const touched = this.#touched;
    for (const change of ["INSERT", "UPDATE"]) {
      const key = expression.replaceAll("row.", "NEW.");
      this.exec(`CREATE TEMP TRIGGER simulator_${change}_${table} AFTER ${change} ON main.${table}
        BEGIN SELECT simulator_touched('${table}', ${key}); END`);
    }
    this.#listeners.push(() => {
      const keys = touched.get(table);
      if (keys === undefined || keys.size === 0) return;
      touched.delete(table);
      listener([...keys]);
    });
  }

  /** Called after each commit, behind the listeners to its rows. */
  onCommitted(listener: () => void): void {
    this.#listeners.push(listener);
  }

  #trackTouched(): Touched {
    const touched: Touched = new Map();
    this.connection.function("simulator_touched", (table: unknown, key: unknown) => {
      const keys = touched.get(String(table)) ?? new Set();
      keys.add(String(key));
      touched.set(String(table), keys);
      return null;
    });
    return touched;
  }

  override transaction<R>(body: () => R): R {
    const fault = this.#next();
    if (fault?.phase === "begin") throw fault.strike();
    const result = super.transaction(() => {
      const made = body();
      if (fault?.phase === "before") throw fault.strike();
      return made;
    });
    for (const tell of this.#listeners) tell();
    if (fault?.phase === "after") throw fault.strike();
    return result;
  }

  #next(): DiskFault | undefined {
    const fault = this.#fault;
    if (fault === undefined) return undefined;
    if (fault.skip > 0) {
      fault.skip--;
      return undefined;
    }
    fault.commits--;
    if (fault.commits <= 0) this.#fault = undefined;
    return fault;
  }
}

/** In memory: all its users share one connection, which is the disk. */
export async function createDisk(name: string, migrations: readonly Migration[]): Promise<Disk> {
  const disk = new Disk(openSqlite({ path: ":memory:" }).connection, name);
  await migrateSqlite(disk, migrations);
  return disk;
}

export function diskError(kind: "io" | "disk_full"): StorageError {
  return new StorageError(kind, `the simulated disk says ${kind}`);
}

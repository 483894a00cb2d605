// One database file and what can go wrong with it. It outlives the processes that use it; what was committed is there,
// what was not is gone.
import { StorageError } from "@claudemesh/storage/errors";
import type { Migration } from "@claudemesh/storage/migrations";
import { openSqlite, Sqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import type { CommitPhase } from "../core/plan.ts";

export type DiskFault = {
  readonly phase: CommitPhase;
  /** Called at the place; the transaction then fails with this. */
  readonly strike: () => StorageError;
  /** So many commits go well, then so many do not. */
  skip: number;
  commits: number;
};

export class Disk extends Sqlite {
  #fault: DiskFault | undefined;
  /** After each commit, before anybody is told. */
  onCommitted: () => void = () => undefined;
  commits = 0;

  arm(fault: DiskFault | undefined): void {
    this.#fault = fault;
  }

  override transaction<R>(body: () => R): R {
    const fault = this.#next();
    if (fault?.phase === "begin") throw fault.strike();
    const result = super.transaction(() => {
      const made = body();
      if (fault?.phase === "before") throw fault.strike();
      return made;
    });
    this.commits++;
    this.onCommitted();
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

/** In memory: its one connection is the disk, whoever uses it. */
export async function createDisk(name: string, migrations: readonly Migration[]): Promise<Disk> {
  const disk = new Disk(openSqlite({ path: ":memory:" }).connection, name);
  await migrateSqlite(disk, migrations);
  return disk;
}

export function diskError(kind: "io" | "disk_full"): StorageError {
  return new StorageError(kind, `the simulated disk says ${kind}`);
}

// `daemon recover`: saves what can be read of a damaged outbox.db. A fresh outbox is built beside the old one and is
// renamed to its name as the last step; while it lies there, no daemon starts, so that a crash on the way is finished by running
// the command again. The old files are set aside and never changed.
import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { MeshPaths } from "@claudemesh/client/home";
import { nodeSha256 } from "@claudemesh/client/internal/node-sha256";
import { fsyncDir } from "@claudemesh/client/internal/private-files";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { OperatorRefused, withStoppedDaemon } from "../operator-refused.ts";
import { findProblemsReadOnly } from "../stores/sqlite/look-for-damage.ts";
import { outboxMigrations, recoveringPath } from "../stores/sqlite/open-databases.ts";
import { openDamaged } from "../stores/sqlite/read-damaged.ts";
import { type Salvage, salvageRows } from "../stores/sqlite/salvage-rows.ts";

export type Recovery =
  /** Nothing is wrong with it, and nothing was changed. */
  | { readonly outcome: "sound"; readonly mesh: string }
  | {
      readonly outcome: "recovered";
      readonly mesh: string;
      readonly problem: string;
      readonly setAside: string;
      readonly salvage: Salvage;
    }
  /** An earlier run had saved everything and was cut off before it could rename the fresh outbox. */
  | { readonly outcome: "finished"; readonly mesh: string };

/** Never called by a daemon itself: what is lost by it is for a person to judge. */
export function salvageOutbox(paths: MeshPaths, nowMs = Date.now()): Promise<Recovery> {
  return withStoppedDaemon(paths, async () => {
    const { mesh, outboxDb } = paths;
    const fresh = recoveringPath(outboxDb);
    const setAside = `${outboxDb}.corrupt-${new Date(nowMs).toISOString().replaceAll(/[:.]/g, "-")}`;
    if (!existsSync(outboxDb)) {
      if (!existsSync(fresh)) throw new OperatorRefused("nothing_to_recover", `There is no ${outboxDb}.`, { mesh });
      replaceDamaged(outboxDb, setAside);
      return { outcome: "finished", mesh };
    }
    const [problem] = findProblemsReadOnly(outboxDb, "full");
    // Left by a run that was cut off while it still read.
    removeDatabase(fresh);
    if (problem === undefined) return { outcome: "sound", mesh };
    const salvage = await buildFresh(outboxDb, fresh, nowMs);
    replaceDamaged(outboxDb, setAside);
    return { outcome: "recovered", mesh, problem, setAside, salvage };
  });
}

async function buildFresh(damaged: string, fresh: string, nowMs: number): Promise<Salvage> {
  const target = openSqlite({ path: fresh });
  const source = openDamaged(damaged);
  let salvage: Salvage;
  try {
    await migrateSqlite(target, outboxMigrations());
    salvage = salvageRows(source, target, nowMs, nodeSha256);
  } catch (error) {
    target.close();
    // Its presence would say that the damaged one has been read to the end.
    removeDatabase(fresh);
    throw error;
  } finally {
    source.close();
  }
  // A log of its own would be left behind when the file is renamed.
  if (!target.close().checkpointed) throw new Error(`${fresh} could not be completed; nothing was changed.`);
  const [problem] = findProblemsReadOnly(fresh, "full");
  if (problem !== undefined) throw new Error(`${fresh} is damaged as well (${problem}); is the disk sound?`);
  // What looking at it has made; the log is empty.
  for (const suffix of ["-wal", "-shm"]) rmSync(fresh + suffix, { force: true });
  return salvage;
}

/** The damaged file goes first: as long as it is there, its log belongs to it and everything can begin anew. */
function replaceDamaged(outboxDb: string, setAside: string): void {
  for (const suffix of ["", "-wal", "-shm"]) {
    if (existsSync(outboxDb + suffix)) renameSync(outboxDb + suffix, setAside + suffix);
  }
  fsyncDir(dirname(outboxDb));
  renameSync(recoveringPath(outboxDb), outboxDb);
  fsyncDir(dirname(outboxDb));
}

function removeDatabase(path: string): void {
  for (const suffix of ["-wal", "-shm", ""]) rmSync(path + suffix, { force: true });
}

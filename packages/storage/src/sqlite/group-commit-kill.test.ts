// kill -9 while sixteen callers commit: whatever was acknowledged is in the file, and the file is sound.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { makeTemporaryFolder, startStorageProcess } from "../testing/storage-processes.ts";
import { findIntegrityProblems } from "./integrity.ts";
import { openSqlite } from "./sqlite.ts";

const kills = 8;

/** When to kill, between the first commits and well into checkpoints; the same on every run. */
function killAfterMs(round: number): number {
  return (createHash("sha256").update(`kill ${round}`).digest().readUInt16BE(0) % 250) + 1;
}

test("every id that was acknowledged before SIGKILL is in the file afterwards", async () => {
  const path = join(makeTemporaryFolder(), "store.db");
  const acknowledged = new Set<number>();
  for (let round = 0; round < kills; round += 1) {
    const writer = startStorageProcess("commitUntilKilled", path);
    await writer.printed("ready");
    await sleep(killAfterMs(round));
    writer.child.kill("SIGKILL");
    expect(await writer.ended).toBe("SIGKILL");
    for (const line of writer.lines.slice(1)) acknowledged.add(Number(line));

    const db = openSqlite({ path, mustExist: true });
    const stored = new Set(
      db
        .sql<{ id: number }>("SELECT id FROM event")
        .all()
        .map((row) => row.id),
    );
    const lost = [...acknowledged].filter((id) => !stored.has(id));
    expect(lost, `lost in round ${round}`).toEqual([]);
    expect(findIntegrityProblems(db, "full")).toEqual([]);
    db.close();
  }
  expect(acknowledged.size).toBeGreaterThan(kills * 16);
});

// A backup is a sound database of one moment, private and complete, or there is none.
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { expect, test } from "vitest";
import { makeTemporaryFolder } from "../testing/storage-processes.ts";
import { backUpSqlite } from "./backup.ts";
import { findIntegrityProblems } from "./integrity.ts";
import { openSqlite, type Sqlite } from "./sqlite.ts";

function openFilled(path: string, rows: number): Sqlite {
  const db = openSqlite({ path });
  db.exec("CREATE TABLE event (id INTEGER PRIMARY KEY, filler BLOB NOT NULL) STRICT");
  db.transaction(() => {
    for (let row = 0; row < rows; row += 1) insertRow(db);
  });
  return db;
}

function insertRow(db: Sqlite): void {
  db.sql("INSERT INTO event (filler) VALUES (?)").run(new Uint8Array(500));
}

function readIds(path: string): number[] {
  const db = openSqlite({ path, mustExist: true });
  expect(findIntegrityProblems(db, "full")).toEqual([]);
  const rows = db.sql<{ id: number }>("SELECT id FROM event ORDER BY id").all();
  db.close();
  return rows.map((row) => row.id);
}

test("what is written meanwhile is in the copy up to one moment, or after it", async () => {
  const folder = makeTemporaryFolder();
  const db = openFilled(join(folder, "store.db"), 5000);
  let finished = false;
  const copying = backUpSqlite(db, join(folder, "copy.db")).finally(() => {
    finished = true;
  });
  let written = 0;
  while (!finished) {
    db.transaction(() => insertRow(db));
    written += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  await copying;
  db.close();
  const ids = readIds(join(folder, "copy.db"));
  expect(ids).toEqual(Array.from({ length: ids.length }, (_, index) => index + 1));
  expect(ids.length).toBeGreaterThanOrEqual(5000);
  expect(ids.length).toBeLessThanOrEqual(5000 + written);
});

test("the copy is one private file and nothing else is left", async () => {
  const folder = makeTemporaryFolder();
  const db = openFilled(join(folder, "store.db"), 10);
  const umask = process.umask(0o777);
  await backUpSqlite(db, join(folder, "copy.db")).finally(() => process.umask(umask));
  db.close();
  expect(statSync(join(folder, "copy.db")).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder).sort()).toEqual(["copy.db", "store.db"]);
});

test("of two copies to one target at a time one is made, whole, and the other is refused", async () => {
  const folder = makeTemporaryFolder();
  const db = openFilled(join(folder, "store.db"), 2000);
  const target = join(folder, "copy.db");
  const outcomes = await Promise.allSettled([backUpSqlite(db, target), backUpSqlite(db, target)]);
  db.close();
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect(outcomes.find(({ status }) => status === "rejected")).toMatchObject({ reason: { kind: "path_refused" } });
  expect(readIds(target)).toHaveLength(2000);
  expect(readdirSync(folder).sort()).toEqual(["copy.db", "store.db"]);
});

test("what another copy has left half done stays as it is", async () => {
  const folder = makeTemporaryFolder();
  const db = openFilled(join(folder, "store.db"), 1);
  writeFileSync(join(folder, "copy.db.partial"), "another file");
  await backUpSqlite(db, join(folder, "copy.db"));
  db.close();
  expect(readdirSync(folder).sort()).toEqual(["copy.db", "copy.db.partial", "store.db"]);
});

test("a database in memory can be saved", async () => {
  const target = join(makeTemporaryFolder(), "copy.db");
  const db = openFilled(":memory:", 3);
  await backUpSqlite(db, target);
  expect(readIds(target)).toEqual([1, 2, 3]);
});

test("a target that exists is refused and stays as it is", async () => {
  const folder = makeTemporaryFolder();
  const db = openFilled(join(folder, "store.db"), 1);
  const target = join(folder, "copy.db");
  writeFileSync(target, "precious");
  await expect(backUpSqlite(db, target)).rejects.toMatchObject({ kind: "path_refused" });
  expect(statSync(target).size).toBe("precious".length);
  db.close();
});

test("a copy that fails leaves no file behind", async () => {
  const folder = makeTemporaryFolder();
  const db = openFilled(join(folder, "store.db"), 1);
  await expect(backUpSqlite(db, join(folder, "nowhere", "copy.db"))).rejects.toMatchObject({ kind: "unavailable" });
  db.close();
  await expect(backUpSqlite(openClosed(), join(folder, "copy.db"))).rejects.toMatchObject({ kind: "closed" });
  expect(readdirSync(folder)).toEqual(["store.db"]);
});

function openClosed(): Sqlite {
  const db = openSqlite({ path: ":memory:" });
  db.close();
  return db;
}

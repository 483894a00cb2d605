// Damage is found and named; a sound file has no problems.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { makeTemporaryFolder } from "../testing/storage-processes.ts";
import { findIntegrityProblems, type IntegrityDepth } from "./integrity.ts";
import { openSqlite, type Sqlite } from "./sqlite.ts";

const pageBytes = 4096;

function fill(path: string): Sqlite {
  const db = openSqlite({ path });
  db.exec("CREATE TABLE event (id INTEGER PRIMARY KEY, label TEXT NOT NULL UNIQUE) STRICT");
  db.transaction(() => {
    for (let n = 0; n < 2000; n += 1) db.sql("INSERT INTO event (label) VALUES (?)").run(`label ${n}`);
  });
  return db;
}

describe.each<IntegrityDepth>(["quick", "full"])("a %s check", (depth) => {
  test("finds nothing in a sound database", () => {
    const db = fill(":memory:");
    expect(findIntegrityProblems(db, depth)).toEqual([]);
  });

  test("finds pages that were overwritten", () => {
    const path = join(makeTemporaryFolder(), "store.db");
    fill(path).close();
    const bytes = readFileSync(path);
    bytes.fill(0x5a, pageBytes * 3, pageBytes * 6);
    writeFileSync(path, bytes);
    const db = openSqlite({ path });
    expect(findIntegrityProblems(db, depth).length).toBeGreaterThan(0);
    db.close();
  });

  test("finds a row that refers to nothing", () => {
    const db = openSqlite({ path: ":memory:" });
    db.exec(`CREATE TABLE parent (id INTEGER PRIMARY KEY) STRICT;
      CREATE TABLE child (id INTEGER PRIMARY KEY, parent_id INTEGER REFERENCES parent (id)) STRICT;
      PRAGMA foreign_keys = OFF;
      INSERT INTO child VALUES (7, 99);`);
    expect(findIntegrityProblems(db, depth)).toEqual(["row 7 of child refers to a row of parent that does not exist"]);
  });
});

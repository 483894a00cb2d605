import assert from "node:assert/strict";
// A disk that fails a read while a damaged outbox is being saved costs no row.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { openDamaged, readDamagedTable } from "./read-damaged.ts";

const rows = 20;

/** Statements fail to be prepared as on a disk that failed a read, once for each number that is given. */
function openFailing(failsAt: (statement: number) => boolean): { db: DatabaseSync; failures: () => number } {
  const folder = mkdtempSync(join(tmpdir(), "cm-damaged-"));
  const path = join(folder, "x.db");
  const whole = openSqlite({ path });
  whole.exec("CREATE TABLE t (id TEXT PRIMARY KEY, body TEXT) STRICT");
  for (let n = 0; n < rows; n++) whole.sql("INSERT INTO t VALUES (?, ?)").run(`id-${n}`, "x".repeat(500));
  whole.close();
  const db = openDamaged(path);
  onTestFinished(() => {
    db.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const prepare = db.prepare.bind(db);
  let statements = 0;
  let failures = 0;
  db.prepare = (sql) => {
    if (!failsAt(++statements)) return prepare(sql);
    failures++;
    throw Object.assign(new Error("disk I/O error"), { code: "ERR_SQLITE_ERROR", errcode: 8_458 });
  };
  return { db, failures: () => failures };
}

function readAll(db: DatabaseSync): number {
  const table = readDamagedTable(db, { name: "t", key: "rowid", label: "id" });
  assert(table.type === "rows");
  const { columns, rows: found } = table;
  expect(columns).toEqual(["id", "body"]);
  return [...found].length;
}

describe("a read that the disk fails while a damaged table is read", () => {
  it("is tried again, wherever it happens, and costs no row", () => {
    for (let failing = 1; failing <= 4; failing++) {
      const { db, failures } = openFailing((statement) => statement === failing);
      expect(readAll(db)).toBe(rows);
      expect(failures()).toBe(1);
    }
  });

  it("again and again ends the reading with the disk's own error, instead of with fewer rows", () => {
    for (let first = 1; first <= 4; first++) {
      const { db } = openFailing((statement) => statement >= first);
      expect(() => readAll(db)).toThrow(
        expect.objectContaining({ kind: "io", message: expect.stringMatching(/disk I\/O error.*nothing was changed/) }),
      );
    }
  });
});

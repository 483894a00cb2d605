// The pure part of migrations: what runs next, what a valid list is, and reading a folder of files.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { makeTemporaryFolder } from "../testing/storage-processes.ts";
import { loadMigrations } from "./load-migrations.ts";
import { assertMigrationList, checksumOf, chooseNextMigration, type LedgerRow, type Migration } from "./migrations.ts";

function migration(number: number, sql = `CREATE TABLE t${number} (id integer)`): Migration {
  return { package: "demo", number, name: "step", sql };
}

function ran(row: Migration): LedgerRow {
  return { package: row.package, number: row.number, name: row.name, checksum: checksumOf(row) };
}

const list = [migration(1), migration(2), migration(3)];

describe("what runs next", () => {
  test("is the first that the ledger lacks, and nothing when it lacks none", () => {
    expect(chooseNextMigration(list, [])).toBe(list[0]);
    expect(chooseNextMigration(list, [ran(migration(1))])).toBe(list[1]);
    expect(chooseNextMigration(list, list.map(ran))).toBeUndefined();
  });

  test("is refused where the ledger has a hole", () => {
    const holed = [ran(migration(1)), ran(migration(3))];
    expect(() => chooseNextMigration(list, holed)).toThrow(expect.objectContaining({ kind: "schema_changed" }));
  });

  test("is refused where the ledger goes further than the list, saying how far each goes", () => {
    const failing = () => chooseNextMigration(list.slice(0, 1), [ran(migration(1)), ran(migration(2))]);
    expect(failing).toThrow(expect.objectContaining({ kind: "schema_newer" }));
    expect(failing).toThrow(/demo\/0002-step.*up to number 1/);
  });
});

describe("a list", () => {
  test("has every number from 1, in order", () => {
    assertMigrationList(list);
    expect(() => assertMigrationList([migration(2)])).toThrow("number 1 is expected");
    expect(() => assertMigrationList([migration(1), migration(3)])).toThrow("number 2 is expected");
    expect(() => assertMigrationList([migration(1), migration(1)])).toThrow("number 2 is expected");
  });

  test.each(["SELECT 1;\nCOMMIT;\nSELECT 2;", "rollback", "  Abort;"])("ends no transaction: %j", (sql) => {
    expect(() => assertMigrationList([migration(1, sql)])).toThrow("ends the transaction");
  });

  test("may speak of commits in names", () => {
    assertMigrationList([migration(1, "CREATE TABLE commit_log (\n  commit_id integer\n);")]);
  });
});

describe("a folder of migrations", () => {
  function folderWith(files: Record<string, string>): URL {
    const folder = join(makeTemporaryFolder(), "migrations");
    mkdirSync(folder);
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    return pathToFileURL(folder);
  }

  test("is read in the order of its numbers", () => {
    const folder = folderWith({ "0002-add-body.sql": "SELECT 2", "0001-create.sql": "SELECT 1" });
    const expected = [
      { package: "demo", number: 1, name: "create", sql: "SELECT 1" },
      { package: "demo", number: 2, name: "add-body", sql: "SELECT 2" },
    ];
    expect(loadMigrations("demo", folder)).toEqual(expected);
    expect(loadMigrations("demo", new URL(`${folder.href}/`))).toEqual(expected);
  });

  test("is refused when a number is missing, a name is not one, or it is empty", () => {
    expect(() => loadMigrations("demo", folderWith({ "0002-late.sql": "SELECT 2" }))).toThrow("number 1 is expected");
    expect(() => loadMigrations("demo", folderWith({ "1-create.sql": "SELECT 1" }))).toThrow("NNNN-name.sql");
    expect(() => loadMigrations("demo", folderWith({}))).toThrow("holds no migration");
  });
});

// The proof on SQLite with one thing missing at a time: every column, key, check, trigger and property of the schema.
// Each schema is a whole one, built anew, with one change.
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { afterEach, describe, expect, test } from "vitest";
import { proveSurface, surfaceTables } from "../../core/surface.ts";
import { inspectSurface } from "./inspect-surface.ts";
import { registrarMigrations } from "./registrar-migrations.ts";

const migrations = registrarMigrations();
const whole = withLaterChanges(migrations[0]?.sql ?? "", migrations[2]?.sql ?? "");
const opened: Sqlite[] = [];
afterEach(() => {
  for (const db of opened.splice(0)) db.close();
});

/** The tables as later migrations leave them, as one text in which each thing can be changed where it stands. */
function withLaterChanges(first: string, later: string): string {
  const [, column = ""] = /ADD COLUMN ([^;]*);/.exec(later) ?? [];
  const [trigger = ""] = /CREATE TRIGGER registrar_approval_update[\s\S]*?END;/.exec(later) ?? [];
  return first
    .replace("  signature TEXT NOT NULL,\n", (text) => `${text}  ${column},\n`)
    .replace(/CREATE TRIGGER registrar_approval_update[\s\S]*?END;/, () => trigger);
}

function build(sql: string): Sqlite {
  const db = openSqlite({ path: ":memory:" });
  opened.push(db);
  db.exec(sql);
  return db;
}

const prove = (db: Sqlite) => proveSurface(inspectSurface(db, migrations));

function faultsOf(db: Sqlite): string[] {
  const { fit, criteria } = prove(db);
  const faults = criteria.flatMap(({ missing, forbidden }) => [...missing, ...forbidden]);
  expect(fit).toBe(faults.length === 0);
  return [...new Set(faults)];
}

/** The text with one match changed; a change that changes nothing would prove nothing. */
function changed(found: string, replacement: string): string {
  const sql = whole.replace(found, () => replacement);
  expect(sql).not.toBe(whole);
  return sql;
}

const matches = (pattern: RegExp) => [...whole.matchAll(pattern)].map(([text, name = ""]) => ({ text, name }));
const triggers = matches(/CREATE TRIGGER (\w+)[\s\S]*?END;/g);
const indexes = matches(/CREATE UNIQUE INDEX (\w+)[^;]*;/g);
const checks = matches(/CONSTRAINT (\w+) CHECK \((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)/g);
const tables = matches(/CREATE TABLE (\w+) \([\s\S]*?\) STRICT, WITHOUT ROWID;/g);
const columns = Object.entries(surfaceTables).flatMap(([table, names]) => names.map((name) => ({ table, name })));

describe("the proof on SQLite", () => {
  test("holds for the whole schema, and examines all of it", () => {
    expect(faultsOf(build(whole))).toEqual([]);
    expect(triggers).toHaveLength(18);
    expect(indexes).toHaveLength(5);
    expect(checks).toHaveLength(7);
    expect(tables).toHaveLength(8);
    expect(columns).toHaveLength(77);
  });

  test("does not hold for a store without the registrar's tables", () => {
    const { fit, criteria } = prove(build("CREATE TABLE iu_route_attempt (idempotency_key TEXT, attempt_no INTEGER)"));
    expect(fit).toBe(false);
    expect(criteria.filter(({ holds }) => holds)).toEqual([]);
  });

  test.for(triggers)("does not hold without the trigger $name", ({ text, name }) => {
    const [, table = "", event = ""] = /^(\w+)_(update|delete|replace)$/.exec(name) ?? [];
    expect(faultsOf(build(changed(text, "")))).toEqual([`guard ${table} against ${event}`]);
  });

  test.for(triggers)("does not hold where the trigger $name lets everything pass", ({ text, name }) => {
    const weak = text.replace(/SELECT RAISE\(ABORT, '(?:[^']|'')*'\)/, "SELECT 1");
    expect(faultsOf(build(changed(text, weak)))).toContain(
      `unknown trigger ${name} on ${name.replace(/_[a-z]+$/, "")}`,
    );
  });

  test.for(indexes)("does not hold without the index $name", ({ text }) => {
    const [, table = "", keys = ""] = / ON (\w+) \(([^)]*)\)/.exec(text) ?? [];
    expect(faultsOf(build(changed(text, "")))).toEqual([`unique ${table} (${keys})`]);
  });

  test.for(indexes)("does not hold where the index $name is not unique, or covers some rows only", ({ text }) => {
    expect(faultsOf(build(changed(text, text.replace("UNIQUE ", ""))))).toHaveLength(1);
    expect(faultsOf(build(changed(text, text.replace(";", " WHERE mesh_id <> '';"))))).toHaveLength(1);
  });

  test.for(checks)("does not hold without the check $name", ({ text, name }) => {
    expect(faultsOf(build(changed(text, "CHECK (1)")))).toEqual([`check ${name}`]);
  });

  test.for(tables)("does not hold where $name has rowids, or another key", ({ text, name }) => {
    const [fault = ""] = faultsOf(build(changed(text, text.replace(", WITHOUT ROWID", ""))));
    expect(fault).toMatch(new RegExp(`^unique ${name} `));
    const wider = text.replace(/PRIMARY KEY \((.*)\)/, (_, keys) => `PRIMARY KEY (${keys}, ${freeColumn(name, keys)})`);
    expect(faultsOf(build(changed(text, wider)))).toContain(fault);
  });

  test.for(columns)("does not hold without the column $table.$name", ({ table, name }) => {
    const db = build(whole);
    db.exec(`ALTER TABLE ${table} RENAME COLUMN ${name} TO gone`);
    expect(faultsOf(db)).toContain(`column ${table}.${name}`);
  });

  test.for(columns)("does not hold where $table.$name may be empty and must not", ({ table, name }) => {
    const text = tables.find((each) => each.name === table)?.text ?? "";
    const loose = text.replace(new RegExp(`(\\n  ${name} \\w+) NOT NULL`), "$1");
    if (loose === text) expect(text).toMatch(new RegExp(`\\n  ${name} \\w+,`));
    // A key of a table without rowids is never empty, whatever its column says.
    else if (!new RegExp(`PRIMARY KEY \\([^)]*\\b${name}\\b`).test(text)) {
      expect(faultsOf(build(changed(text, loose)))).toEqual([`column ${table}.${name}`]);
    }
  });

  test("does not hold where a foreign trigger runs before the records", () => {
    const db = build(`${whole} CREATE TRIGGER swallow BEFORE INSERT ON registrar_consume
      BEGIN SELECT RAISE(IGNORE); END;`);
    expect(faultsOf(db)).toEqual(["unknown trigger swallow on registrar_consume"]);
  });
});

/** A column that is not part of the key. */
function freeColumn(table: string, keys: string): string {
  return surfaceTables[table]?.find((name) => !keys.split(", ").includes(name)) ?? "";
}

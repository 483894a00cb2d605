// A read that fails is no damage, and damage is not taken for a read that failed.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StorageError } from "@claudemesh/storage/errors";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { findProblemsReadOnly, type Look } from "./look-for-damage.ts";

const quiet = () => undefined;
const eio = () => new StorageError("io", "disk I/O error");

/** Each look in turn; the last one again and again. */
function looks(...given: readonly (readonly string[] | Error)[]): Look {
  let at = 0;
  return () => {
    const look = given[Math.min(at++, given.length - 1)];
    if (look instanceof Error) throw look;
    return [...(look ?? [])];
  };
}

const find = (look: Look, readThrough: () => void = quiet) => findProblemsReadOnly("x.db", "full", look, readThrough);

describe("a read that fails", () => {
  it("once, however it shows, is no damage", () => {
    expect(find(looks(eio(), []))).toEqual([]);
    expect(find(looks(["unable to get the page. error code=266"], []))).toEqual([]);
    expect(find(looks(eio(), eio(), ["page 3"], eio(), []))).toEqual([]);
  });

  it("again and again ends with the error itself, and with no finding", () => {
    expect(() => find(looks(eio()))).toThrow(
      expect.objectContaining({ kind: "io", message: expect.stringContaining("disk I/O error") }),
    );
  });

  it("always at the same page, which SQLite reports like a wrong one, is found out by reading the file", () => {
    const failing = () => {
      throw Object.assign(new Error("EIO: i/o error, read"), { code: "EIO" });
    };
    expect(() => find(looks(["page 3: error code 266"]), failing)).toThrow(expect.objectContaining({ kind: "io" }));
  });

  it("somewhere else at each look is no damage either", () => {
    let page = 0;
    expect(() => find(() => [`page ${++page}`])).toThrow(expect.objectContaining({ kind: "io" }));
  });
});

it("what two looks agree on is damage", () => {
  expect(find(looks(["page 3 is wrong"]))).toEqual(["page 3 is wrong"]);
  expect(find(looks(eio(), ["page 3 is wrong"]))).toEqual(["page 3 is wrong"]);
});

it("another failure than a read's is the caller's", () => {
  const busy = new StorageError("busy", "database is locked");
  expect(() => find(looks(busy))).toThrow(busy);
});

it("sees a real file as it is", () => {
  const folder = mkdtempSync(join(tmpdir(), "cm-look-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "x.db");
  const db = openSqlite({ path });
  db.exec("CREATE TABLE t (a TEXT) STRICT");
  for (let n = 0; n < 500; n++) db.sql("INSERT INTO t (a) VALUES (?)").run("x".repeat(100));
  db.close();
  expect(findProblemsReadOnly(path, "full")).toEqual([]);
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.fill(0x5a, 4_096 + 8, bytes.length - 16));
  expect(findProblemsReadOnly(path, "full")).not.toEqual([]);
});

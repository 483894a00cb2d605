// Which settings go together: a broker must not start on a store that it cannot share, nor with an option that it would
// ignore.
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pino } from "pino";
import { afterAll, describe, expect, test } from "vitest";
import { BrokerConfigError, type BrokerFlags, readBrokerConfig } from "../config.ts";
import { openBackend } from "./open-backend.ts";
import { createQuietLog } from "./quiet-log.ts";

const noFailpoints = { active: false, hit: () => undefined, hitSync: () => undefined, describe: () => "" };

async function refusalOf(flags: BrokerFlags): Promise<string> {
  try {
    const config = readBrokerConfig(flags, {}, undefined);
    const backend = await openBackend({ config, failpoints: noFailpoints, log: pino({ level: "silent" }) });
    await backend.close();
  } catch (error) {
    if (error instanceof BrokerConfigError) return error.message;
    throw error;
  }
  throw new Error("it was accepted");
}

describe("a backend", () => {
  test("on PostgreSQL needs Redis", async () => {
    expect(await refusalOf({ store: "postgres://mesh@localhost/mesh" })).toContain("--redis");
  });

  test.each([
    ["redis", "redis://localhost"],
    ["limiter-open", "true"],
    ["delivery-sweep-seconds", "10"],
  ])("on SQLite refuses --%s, which it would ignore", async (flag, value) => {
    expect(await refusalOf({ store: "sqlite::memory:", [flag]: value })).toContain(`--${flag} goes with`);
  });
});

describe("a SQLite backend", () => {
  const open = (path: string, flags: BrokerFlags = {}) => {
    const config = readBrokerConfig({ store: `sqlite:${path}`, ...flags }, {}, undefined);
    return openBackend({ config, failpoints: noFailpoints, log: pino({ level: "silent" }) });
  };
  const folder = mkdtempSync(join(tmpdir(), "cm-backend-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  test("leaves a file that is no database as it is, its mode too", async () => {
    const path = join(folder, "notes.txt");
    writeFileSync(path, "not a database, and for others to read");
    chmodSync(path, 0o644);
    await expect(open(path)).rejects.toThrow(`${path} is no SQLite database`);
    expect(statSync(path).mode & 0o777).toBe(0o644);
    expect(readFileSync(path, "utf8")).toBe("not a database, and for others to read");
  });

  test("says where its admin token is in a path that holds in every folder", async () => {
    const given = await open(join(folder, "given.db"), { "admin-token-file": "tok" });
    expect(given.adminTokenFile).toBe(resolve("tok"));
    await given.close();
    const beside = await open(join(folder, "beside.db"));
    expect(beside.adminTokenFile).toBe(join(folder, "beside.db.admin-token"));
    await beside.close();
  });

  test("starts on an empty file, and a second one on it says what to do", async () => {
    const path = join(folder, "empty.db");
    writeFileSync(path, "");
    const first = await open(path);
    await expect(open(path)).rejects.toThrow(`Another broker serves ${path}. Stop it`);
    await first.close();
  });
});

describe("a quiet log", () => {
  test("tells the first problem at once, and how many there were when it speaks again", () => {
    const written: [unknown, number][] = [];
    let now = 0;
    const problem = createQuietLog(
      (error, times) => written.push([error, times]),
      () => now,
    );
    for (const error of ["a", "b", "c"]) problem(error);
    expect(written).toEqual([["a", 1]]);
    now = 10_000;
    problem("d");
    expect(written).toEqual([
      ["a", 1],
      ["d", 3],
    ]);
  });
});

// SQLite through the registrar's suites, and what a retry costs there.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { describeRecords } from "../suites/records.suite.ts";
import { describeReplay } from "../suites/replay.suite.ts";
import { describeRules } from "../suites/rules.suite.ts";
import { describeSurface } from "../suites/surface.suite.ts";
import { RegistrarWorld } from "../suites/world.ts";
import { SqliteHarness } from "./testing/sqlite-harness.ts";

const folder = mkdtempSync(join(tmpdir(), "claudemesh-registrar-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let databases = 0;

describe("the registrar on SQLite", () => {
  let harness: SqliteHarness;
  let world: RegistrarWorld;
  beforeEach(async () => {
    harness = await SqliteHarness.create(join(folder, `${++databases}.db`));
    world = await RegistrarWorld.start(harness);
  });
  afterEach(async () => {
    await world.close();
    harness.end();
  });

  describe("replay", () => describeReplay(() => world));
  describe("records", () => describeRecords(() => world));
  describe("rules between rows", () => describeRules(() => world));
  describe("surface", () => describeSurface(() => world));

  test("an exact retry is one statement that reads by keys, and writes nothing itself (REG-1)", async () => {
    await world.ask();
    const request = await world.request({ approval_id: "approval-1" });
    const db = harness.lastOpened;
    const statements = [vi.spyOn(db, "sql"), vi.spyOn(db, "sqlTuples")];
    const transactions = vi.spyOn(db, "transaction");
    expect(await world.ask(request)).toMatchObject({ status: 200 });
    const asked = statements.flatMap(({ mock }) => mock.calls.map(([text]) => text));
    expect(transactions).not.toHaveBeenCalled();
    vi.restoreAllMocks();
    expect(asked).toHaveLength(1);
    const plan = db.sql<{ detail: string }>(`EXPLAIN QUERY PLAN ${asked[0]}`).all(world.meshId, "key-1");
    expect(plan.map(({ detail }) => detail).filter((detail) => !/USING PRIMARY KEY/.test(detail))).toEqual([]);
    expect(plan).toHaveLength(3);
  });

  test("retries of one turn share one snapshot of what is committed (REG-1)", async () => {
    await world.ask();
    const request = await world.request({ approval_id: "approval-1" });
    const snapshots = vi.spyOn(harness.lastOpened, "snapshot");
    const answers = await Promise.all(Array.from({ length: 8 }, () => world.ask(request)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(snapshots).toHaveBeenCalledTimes(1);
    vi.restoreAllMocks();
  });
});

// PostgreSQL through the registrar's suites, and what retries cost there.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { describeRecords } from "../suites/records.suite.ts";
import { describeReplay } from "../suites/replay.suite.ts";
import { describeRules } from "../suites/rules.suite.ts";
import { describeSurface } from "../suites/surface.suite.ts";
import { RegistrarWorld } from "../suites/world.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("registrar");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("the registrar on PostgreSQL", () => {
  const harness = new PostgresHarness(database?.url ?? "");
  beforeAll(() => harness.connect());
  afterAll(() => harness.end());

  let world: RegistrarWorld;
  beforeEach(async () => {
    world = await RegistrarWorld.start(harness);
  });
  afterEach(() => world.close());

  describe("replay", () => describeReplay(() => world));
  describe("records", () => describeRecords(() => world));
  describe("rules between rows", () => describeRules(() => world));
  describe("surface", () => describeSurface(() => world));

  test("retries of one turn are one statement that is planned once, reads by keys and writes nothing (REG-1)", async () => {
    await world.ask();
    const request = await world.request({ approval_id: "approval-1" });
    const reads = vi.spyOn(harness.pool, "read");
    const transactions = vi.spyOn(harness.pool, "transaction");
    const answers = await Promise.all(Array.from({ length: 8 }, () => world.ask(request)));
    const asked = reads.mock.calls.map(([text, , name]) => ({ text, name }));
    expect(transactions).not.toHaveBeenCalled();
    vi.restoreAllMocks();
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(asked).toEqual([{ text: expect.any(String), name: "registrar_consumed" }]);
    await harness.query("SET plan_cache_mode = force_generic_plan");
    await harness.query(`PREPARE retried (uuid[], text[]) AS ${asked[0]?.text}`);
    const plan = await harness.query(`EXPLAIN EXECUTE retried (ARRAY['${world.meshId}']::uuid[], ARRAY['key-1'])`);
    const scans = plan.map((row) => String(row["QUERY PLAN"])).filter((line) => line.includes(" Scan "));
    expect(scans.filter((line) => !/Index Scan using registrar_|Function Scan on q/.test(line))).toEqual([]);
    expect(scans).toHaveLength(4);
  });
});

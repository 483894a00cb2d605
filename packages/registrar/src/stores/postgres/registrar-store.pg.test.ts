// PostgreSQL through the registrar's suites.
import { afterAll, afterEach, beforeAll, beforeEach, describe } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { RegistrarWorld } from "../conformance-world.ts";
import { describeRecords } from "../suites/records/conformance.ts";
import { describeReplay } from "../suites/replay/conformance.ts";
import { describeRules } from "../suites/rules/conformance.ts";
import { describeSurface } from "../suites/surface/conformance.ts";
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
});

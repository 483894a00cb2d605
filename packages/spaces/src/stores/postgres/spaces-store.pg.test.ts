// PostgreSQL through the spaces suite.
import { afterAll, beforeAll, describe } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { describeSpacesSuite } from "../suites/spaces.suite.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("spaces");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("spaces on PostgreSQL", () => {
  const harness = new PostgresHarness(database?.url ?? "");
  beforeAll(() => harness.connect());
  afterAll(() => harness.end());
  describeSpacesSuite(harness);
});

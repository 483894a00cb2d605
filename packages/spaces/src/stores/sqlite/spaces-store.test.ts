// SQLite through the spaces suite.
import { afterAll, describe } from "vitest";
import { describeSpacesConformance } from "../conformance.ts";
import { SqliteHarness } from "./testing/sqlite-harness.ts";

const harness = new SqliteHarness();
afterAll(() => harness.removeFiles());

describe("spaces on SQLite", () => describeSpacesConformance(harness));

// Random interleavings on SQLite against the naive models.
import { afterAll, describe } from "vitest";
import { describeMessagesModels } from "../suites/messages.suite.ts";
import { SqliteHarness } from "./testing/sqlite-harness.ts";

const harness = new SqliteHarness();
afterAll(() => harness.end());

describe("SQLite against the models", () => describeMessagesModels(harness));

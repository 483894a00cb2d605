// A seeded slice of the fuzz run over the local API; the full count is in api-fuzz.soak.test.ts.
import { test } from "vitest";
import { fuzzLocalApi } from "./support/api-fuzz.ts";
import { expectHealthyFuzz } from "./support/api-fuzz-bars.ts";
import { seedOfTheDay } from "./support/seed.ts";

test("3,000 requests, good, bent and broken, crash nothing, get no 5xx and leak no descriptor", async () => {
  expectHealthyFuzz(await fuzzLocalApi(seedOfTheDay(), 3_000), { memory: false });
});

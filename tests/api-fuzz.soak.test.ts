// The fuzz run over the local API at its full count, with the bound on memory.
import { test } from "vitest";
import { fuzzLocalApi } from "./support/api-fuzz.ts";
import { expectHealthyFuzz } from "./support/api-fuzz-bars.ts";
import { seedOfTheDay } from "./support/seed.ts";

test("100,000 requests, good, bent and broken, crash nothing, get no 5xx and leak neither memory nor descriptors", async () => {
  expectHealthyFuzz(await fuzzLocalApi(seedOfTheDay(), 100_000), { memory: true });
});

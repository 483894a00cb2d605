// Our own spaces and registrar on PostgreSQL and Redis, held against the contract by the kit that others use.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tryArea, trySpaces } from "./support/conformance-runs.ts";
import { type BrokerTarget, startBrokerTarget } from "./support/conformance-targets.ts";
import { createTestDatabase, findRedis } from "./support/services.ts";

/** More than the kit sends elsewhere, and soon spent. */
const budget = 200;
const database = await createTestDatabase("conformance_spaces");
const redis = database === undefined ? undefined : await findRedis();

describe.skipIf(redis === undefined)("the conformance kit, on PostgreSQL", () => {
  let broker: BrokerTarget;

  beforeAll(async () => {
    broker = await startBrokerTarget({
      store: database?.url ?? "",
      redis: redis?.url ?? "",
      "rate-limit": `${budget}/60s`,
    });
  });
  afterAll(async () => {
    await broker.stop();
    await database?.drop();
    await redis?.stop();
  });

  it("finds our spaces in keeping with the contract", async () => {
    const { passed, ...rest } = await trySpaces(broker, budget);
    expect(rest).toEqual({ missed: [], skipped: [] });
    expect(passed).toBeGreaterThan(90);
  });

  it("finds our registrar in keeping with the contract", async () => {
    const given = { url: [broker.url], "admin-token": [broker.adminToken] };
    const { missed, skipped, passed } = await tryArea("registrar", given);
    expect(missed).toEqual([]);
    // The built-in verifier refuses nothing that was registered soundly.
    expect(skipped).toEqual(["4.4-rp-07", "4.4-compensate"]);
    expect(passed).toBeGreaterThan(55);
  });
});

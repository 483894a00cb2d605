// The registrar over the network with PostgreSQL.
import { join } from "node:path";
import { afterAll, describe } from "vitest";
import { makeTemporaryFolder, startTestBroker } from "../../../../tests/support/broker-harness.ts";
import { createTestDatabase, findRedis } from "../../../../tests/support/services.ts";
import { describeRegistrarOverNetwork } from "./suites/registrar/conformance.ts";

const database = await createTestDatabase("registrar_network");
const redis = database === undefined ? undefined : await findRedis();
afterAll(async () => {
  await database?.drop();
  await redis?.stop();
});

describe.skipIf(redis === undefined)("the registrar over the network, on PostgreSQL", () => {
  describeRegistrarOverNetwork((flags = {}, env = {}) => {
    const folder = makeTemporaryFolder();
    const own = {
      store: database?.url ?? "",
      redis: redis?.url ?? "",
      "admin-token-file": join(folder, "admin-token"),
    };
    return startTestBroker({ folder, flags: { ...own, ...flags }, env });
  });
});

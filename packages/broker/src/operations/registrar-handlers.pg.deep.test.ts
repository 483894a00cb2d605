// The registrar over the network with PostgreSQL; and what a broker does whose registrar's tables are not fit.
import { join } from "node:path";
import pg from "pg";
import { afterAll, describe } from "vitest";
import { makeTemporaryFolder, startTestBroker } from "../../../../tests/support/broker-harness.ts";
import { createTestDatabase, findRedis } from "../../../../tests/support/services.ts";
import { describeRegistrarOverNetwork, type StartBroker } from "./suites/registrar.suite.ts";
import { describeUnfitRegistrar } from "./suites/unfit-registrar.suite.ts";

const database = await createTestDatabase("registrar_network");
const damaged = await createTestDatabase("registrar_unfit");
const redis = database === undefined ? undefined : await findRedis();
afterAll(async () => {
  await database?.drop();
  await damaged?.drop();
  await redis?.stop();
});

const startOn =
  (url: string | undefined): StartBroker =>
  (flags = {}, env = {}) => {
    const folder = makeTemporaryFolder();
    const own = { store: url ?? "", redis: redis?.url ?? "", "admin-token-file": join(folder, "admin-token") };
    return startTestBroker({ folder, flags: { ...own, ...flags }, env });
  };

describe.skipIf(redis === undefined)("the registrar over the network, on PostgreSQL", () => {
  describeRegistrarOverNetwork(startOn(database?.url));
});

async function change(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: damaged?.url });
  await client.connect();
  await client.query(sql);
  await client.end();
}

describe.skipIf(redis === undefined)(
  "a broker whose registrar's tables are not fit, on PostgreSQL (RP-10, REG-8)",
  () => {
    describeUnfitRegistrar(
      () => ({ start: () => startOn(damaged?.url)(), change }),
      [
        {
          what: "without a guard",
          sql: "DROP TRIGGER registrar_verification_append_only ON mesh.registrar_verification",
          undo: `CREATE TRIGGER registrar_verification_append_only
          BEFORE UPDATE OR DELETE OR TRUNCATE ON mesh.registrar_verification
          FOR EACH STATEMENT EXECUTE FUNCTION mesh.registrar_refuse()`,
          missing: "guard registrar_verification against delete",
        },
        {
          what: "where effects are keyed by attempts",
          sql: `DROP INDEX mesh.registrar_consume_effect_key;
          CREATE UNIQUE INDEX registrar_consume_effect_key ON mesh.registrar_consume (mesh_id, effect_key, attempt_id)`,
          undo: `DROP INDEX mesh.registrar_consume_effect_key;
          CREATE UNIQUE INDEX registrar_consume_effect_key ON mesh.registrar_consume (mesh_id, effect_key)`,
          missing: "unique registrar_consume (mesh_id, effect_key)",
        },
      ],
    );
  },
);

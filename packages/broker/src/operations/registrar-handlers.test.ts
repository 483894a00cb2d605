// The registrar over the network with SQLite; and what a broker does whose registrar's tables are not fit.
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { makeTemporaryFolder, startTestBroker } from "../../../../tests/support/broker-harness.ts";
import { describeRegistrarOverNetwork } from "./suites/registrar.suite.ts";
import { describeUnfitRegistrar } from "./suites/unfit-registrar.suite.ts";

describe("the registrar over the network, on SQLite", () => {
  describeRegistrarOverNetwork((flags = {}, env = {}) => startTestBroker({ flags, env }));
});

describe("a broker whose registrar's tables are not fit (RP-10, REG-8)", () => {
  describeUnfitRegistrar(() => {
    const folder = makeTemporaryFolder();
    return {
      start: () => startTestBroker({ folder }),
      change: async (sql) => {
        const db = new DatabaseSync(join(folder, "broker.db"));
        db.exec(sql);
        db.close();
      },
    };
  }, [
    {
      what: "without a guard",
      sql: "DROP TRIGGER registrar_verification_delete",
      undo: `CREATE TRIGGER registrar_verification_delete BEFORE DELETE ON registrar_verification
BEGIN SELECT RAISE(ABORT, 'the registrar''s records are append-only'); END`,
      missing: "guard registrar_verification against delete",
    },
    {
      what: "where effects are keyed by attempts",
      sql: `DROP INDEX registrar_consume_effect_key;
        CREATE UNIQUE INDEX registrar_consume_effect_key ON registrar_consume (mesh_id, effect_key, attempt_id)`,
      undo: `DROP INDEX registrar_consume_effect_key;
        CREATE UNIQUE INDEX registrar_consume_effect_key ON registrar_consume (mesh_id, effect_key)`,
      missing: "unique registrar_consume (mesh_id, effect_key)",
    },
  ]);

  test("does not start with a verifier that cannot be run", async () => {
    const flags = { "registrar-verifier": "exec:/nowhere/verifier" };
    await expect(startTestBroker({ flags })).rejects.toThrow(/--registrar-verifier names \/nowhere\/verifier/);
  });
});

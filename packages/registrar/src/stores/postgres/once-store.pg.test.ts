// PostgreSQL through the suites of `once`: stores with pools of their own, as of several brokers.
import { randomUUID } from "node:crypto";
import { postgresMembersMigrations } from "@claudemesh/members/postgres";
import { openPostgres, type Postgres } from "@claudemesh/storage/postgres";
import { migratePostgres } from "@claudemesh/storage/postgres-migrations";
import pg from "pg";
import { afterAll, beforeAll, describe } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import type { OnceStore } from "../../ports/once-store.ts";
import { describeOnce, type OnceHarness } from "../suites/once.suite.ts";
import { describeOnceModel } from "../suites/once-model.suite.ts";
import { createPostgresOnceStore } from "./once-store.ts";
import { postgresRegistrarMigrations } from "./registrar-migrations.ts";

const database = await createTestDatabase("once");
afterAll(() => database?.drop());
const url = database?.url ?? "";

describe.skipIf(database === undefined)("once on PostgreSQL", () => {
  const admin = new pg.Client({ connectionString: url });
  const pools: Postgres[] = [];
  let stores: OnceStore[] = [];

  beforeAll(async () => {
    await admin.connect();
    for (let count = 0; count < 3; count++)
      pools.push(openPostgres({ url, poolSize: 4, onIdleError: () => undefined }));
    const [pool] = pools;
    if (pool === undefined) throw new Error("no pool");
    await migratePostgres(pool, [...postgresMembersMigrations(), ...postgresRegistrarMigrations()]);
    stores = pools.map((one) => createPostgresOnceStore(one));
  });
  afterAll(async () => {
    for (const pool of pools) await pool.close();
    await admin.end();
  });

  const harness: OnceHarness = {
    stores: () => stores,
    addMesh: async (pubkeys) => {
      const meshId = randomUUID();
      await admin.query("INSERT INTO mesh.mesh (id, name, created_at) VALUES ($1, $2, now())", [meshId, meshId]);
      await admin.query(
        `INSERT INTO mesh.member (mesh_id, pubkey, name, role, joined_at)
         SELECT $1, pubkey, 'm', 'member', now() FROM unnest($2::text[]) AS pubkey`,
        [meshId, pubkeys],
      );
      return meshId;
    },
    revoke: async (meshId, pubkey) => {
      await admin.query("UPDATE mesh.member SET revoked_at = now() WHERE mesh_id = $1 AND pubkey = $2", [
        meshId,
        pubkey,
      ]);
    },
    execute: async (sql) => {
      await admin.query(sql.replaceAll("once_claim", "mesh.once_claim"));
    },
  };

  describeOnce(harness);
  describeOnceModel(harness);
});

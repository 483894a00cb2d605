// Looking after a PostgreSQL store from outside.
import { openPostgres } from "@claudemesh/storage/postgres";
import { afterAll, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../tests/support/services.ts";
import { readBrokerConfig } from "../config.ts";
import { backUpStore, checkStore, migrateStore, statsOfStore, sweepStore } from "./maintain-store.ts";

const database = await createTestDatabase("maintain");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("a PostgreSQL store", () => {
  const url = database?.url ?? "";
  const store = { kind: "postgres", url } as const;
  const meshId = "01890000-0000-7000-8000-000000000001";

  test("is migrated, counted, swept and checked without a broker and without Redis", async () => {
    await expect(checkStore(store)).rejects.toThrow("claudemesh broker migrate");
    const planned = await migrateStore(store, { dryRun: true });
    expect(planned.length).toBeGreaterThan(3);
    expect(await migrateStore(store, { dryRun: false })).toEqual(planned);
    expect(await migrateStore(store, { dryRun: true })).toEqual([]);
    const postgres = openPostgres({ url, poolSize: 1, onIdleError: () => undefined });
    await postgres.transaction(async (tx) => {
      await tx.script(`
        INSERT INTO mesh.mesh (id, name, created_at) VALUES ('${meshId}', 'acme', now());
        INSERT INTO mesh.client_message_fence
          (mesh_id, sender_pubkey, client_message_id, request_fingerprint, fenced_at, expires_at)
          VALUES ('${meshId}', 'x', 'm1', '\\x00', now(), now()), ('${meshId}', 'x', 'm2', '\\x00', now(), NULL)`);
    });
    await postgres.close();
    expect(await statsOfStore(store)).toMatchObject({ meshes: [{ name: "acme", rows: { fences: 2 } }] });
    expect(await sweepStore(readBrokerConfig({ store: url }, {}, undefined))).toEqual({ fences: 1 });
    const report = await checkStore(store);
    expect(report.checks.filter(({ found }) => found > 0)).toMatchObject([{ name: "fence_without_member", found: 1 }]);
  });

  test("is backed up with pg_dump into a private file: the command is reported, without the password", async () => {
    const secret = {
      kind: "postgres",
      url: "postgres://mesh:pass'word@db:5433/mesh?sslmode=require&password=hunter2",
    } as const;
    const outcome = await backUpStore(secret, "/backups/mesh's.dump");
    expect(outcome).toEqual({
      type: "use_pg_dump",
      command:
        "(umask 077; pg_dump --format=custom --schema=mesh --schema=claudemesh --file='/backups/mesh'\\''s.dump' 'postgres://mesh@db:5433/mesh?sslmode=require')",
    });
  });
});

// Statements that a connection planned when the tables were all but empty, and uses when they are full: what they read
// then, by the server's own counters.
import { openPostgres } from "@claudemesh/storage/postgres";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { until } from "../../../../../tests/support/world.ts";
import { selectLayers } from "./entity-rows.ts";
import { lockWriters } from "./session-rows.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("young_tables");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("on a connection that planned while the tables were empty", () => {
  test("a commit reads the layers and the members that it names, and no others", async () => {
    const url = database?.url ?? "";
    const harness = new PostgresHarness(url);
    await harness.connect();
    onTestFinished(() => harness.end());
    await harness.reset();
    const space = { meshId: harness.meshId, spaceId: "s" };
    const committing = openPostgres({ url, poolSize: 1, genericPlans: true, onIdleError: () => undefined });
    const layers = [{ entityId: "e7", seq: 7 }];
    const writers = [{ sessionId: "s", memberPubkey: "m7" }];
    const read = () =>
      committing.transaction(async (tx) => ({
        layers: await selectLayers(tx, space, "main", layers),
        writers: await lockWriters(tx, space, writers),
      }));

    expect(await read()).toEqual({ layers: [[]], writers: [{ live: false, session: undefined }] });
    await harness.query(`INSERT INTO mesh.space_revision
      SELECT '${harness.meshId}', 's', 'main', 'e' || n, n, 0, 'set', '{}', '[]' FROM generate_series(1, 1000) AS n`);
    await harness.query(`INSERT INTO mesh.member (mesh_id, pubkey, name, role, joined_at)
      SELECT '${harness.meshId}', 'm' || n, 'm', 'member', now() FROM generate_series(1, 1000) AS n`);
    expect(await read()).toMatchObject({ layers: [[{ seq: 7 }]], writers: [{ live: true }] });

    // A connection reports what it counted at its end.
    await committing.close();
    await until("the connection has reported", async () => {
      await harness.query("SELECT pg_stat_clear_snapshot()");
      const rows = await harness.query(`SELECT relname, idx_scan::int AS scans, idx_tup_read::int AS read
        FROM pg_stat_user_indexes WHERE indexrelname IN ('member_pkey', 'space_revision_pkey') ORDER BY relname`);
      if (rows.some(({ scans }) => scans !== 2)) return false;
      expect(rows.map(({ relname, read }) => [relname, read])).toEqual([
        ["member", 1],
        ["space_revision", 1],
      ]);
      return true;
    });
  });
});

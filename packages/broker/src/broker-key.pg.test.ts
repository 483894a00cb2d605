// Brokers on one PostgreSQL are one broker to their members: whichever starts first makes the key, and all prove it.
import { openPostgres } from "@claudemesh/storage/postgres";
import { afterAll, describe, expect, test } from "vitest";
import { createTestMesh, makeTemporaryFolder, startTestBroker } from "../../../tests/support/broker-harness.ts";
import { findServers } from "../../../tests/support/brokers.ts";
import { RawPeer } from "../../../tests/support/raw-peer.ts";

const servers = await findServers("broker-key");
afterAll(() => servers.stop());

describe.skipIf(!servers.found)("brokers on one PostgreSQL", () => {
  test("that start at once share one key, which a restart and a member find again", async () => {
    const { databaseUrl: store, redisUrl: redis } = servers.urls;
    const folder = makeTemporaryFolder();
    const start = () =>
      startTestBroker({ folder, flags: { store, redis, "admin-token-file": `${folder}/admin-token` } });
    const brokers = await Promise.all([start(), start(), start()]);
    const [first] = brokers;
    expect(new Set(brokers.map(({ brokerKey }) => brokerKey)).size).toBe(1);
    const alice = await createTestMesh(first);
    for (const { url, brokerKey } of brokers) {
      const peer = await RawPeer.connect(url, alice, "client");
      expect(peer.proof.broker_key).toBe(brokerKey);
    }
    await first.stop();
    expect((await start()).brokerKey).toBe(first.brokerKey);
  });

  test("keep the key in one row that no other role of the database may read", async () => {
    const postgres = openPostgres({ url: servers.urls.databaseUrl, onIdleError: () => undefined });
    const [row] = await postgres.read<{ rows: string; open: boolean }>(
      `SELECT count(*)::text AS rows, has_table_privilege('public', 'mesh.broker_key', 'SELECT') AS open
       FROM mesh.broker_key`,
    );
    await postgres.close();
    expect(row).toEqual({ rows: "1", open: false });
  });
});

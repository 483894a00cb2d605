// /readyz of a real broker whose SQLite file is on a disk that fills up.
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test, vi } from "vitest";
import { callBroker, makeTemporaryFolder, startTestBroker } from "../../../tests/support/broker-harness.ts";
import { skipUnlessRequired } from "../../../tests/support/missing-part.ts";
import { SmallDisk } from "../../../tests/support/small-disk.ts";

test("/readyz is 503 insufficient_storage while the store's disk has no room for an accept, and 200 afterwards", async (context) => {
  const disk = await SmallDisk.mount(join(makeTemporaryFolder(), "disk"), 32 * 1_048_576);
  if (disk === undefined) return skipUnlessRequired(context, "only root can mount");
  onTestFinished(() => disk.unmount());
  const { url, storePath } = await startTestBroker({ folder: disk.folder });
  // The proof is kept for a second.
  const untilReadiness = (status: number, facts: object) =>
    vi.waitFor(async () => expect(await callBroker(url, "GET", "/readyz")).toMatchObject({ status, body: facts }), {
      timeout: 15_000,
      interval: 100,
    });
  await untilReadiness(200, { status: "ready", store: "ok" });
  // From here on the log is written over from its beginning, so that a small row needs nothing of the disk.
  const db = new DatabaseSync(storePath);
  db.exec("PRAGMA wal_checkpoint(RESTART)");
  db.close();
  disk.fill();
  await untilReadiness(503, { error: "insufficient_storage", store: "unavailable", limiter: "ok" });
  disk.free();
  await untilReadiness(200, { store: "ok" });
});

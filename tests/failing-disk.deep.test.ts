// Writes and flushes that fail now and then, injected below the daemon by strace: whatever was answered with 2xx is there
// after a restart, and lands once (MSG-1). Needs strace; without it the test says so, and fails where every test must run.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { claudemeshBin, LongRunning } from "./support/process.ts";
import { until, World } from "./support/world.ts";

const hasStrace = spawnSync("strace", ["-V"]).status === 0;
if (!hasStrace) {
  const message = "skipped: tests/failing-disk.deep.test.ts needs strace";
  if (process.env.CLAUDEMESH_REQUIRE_SERVICES === "1") throw new Error(message);
  process.stdout.write(`${message}\n`);
}

const sends = 150;

const cases = [
  { what: "flushes fail with EIO", inject: ["fdatasync,fsync:error=EIO:when=30+7"] },
  { what: "writes fail with ENOSPC", inject: ["pwrite64:error=ENOSPC:when=200+23"] },
  { what: "both fail", inject: ["fdatasync,fsync:error=EIO:when=30+11", "pwrite64:error=EIO:when=200+37"] },
];

describe.runIf(hasStrace)("a disk that fails now and then", () => {
  const world = new World();
  beforeAll(async () => {
    await world.startBroker();
    await world.addPeer("owner");
  });
  afterAll(() => world.end());

  test.for(cases)("never makes a 2xx of what is not there: $what", async ({ what, inject }) => {
    const peer = await world.addPeer(what.replaceAll(" ", "-"));
    // The databases are made while the disk is sound.
    await peer.start();
    await peer.kill("SIGTERM");
    const files = ["outbox.db", "inbox.db"].flatMap((name) => [name, `${name}-wal`]);
    const faults = inject.flatMap((rule) => ["-e", `inject=${rule}`]);
    const paths = files.flatMap((name) => ["-P", join(peer.folder, name)]);
    const trace = ["-e", "trace=pwrite64,fdatasync,fsync", "-o", "/dev/null"];
    const daemon = new LongRunning<{ pid: number }>(["daemon", "up", "--mesh", world.mesh, "--foreground"], {
      home: peer.home,
      wrapper: ["strace", "-f", "-qq", ...trace, ...paths, ...faults, claudemeshBin],
    });
    const { pid } = await daemon.ready;
    const statuses = new Map<string, number>();
    for (let n = 0; n < sends; n++) {
      const id = `${what}-${n}`.replaceAll(" ", "-");
      const { status } = await peer.client.send({ to: "@self", message: `text of ${id}`, client_message_id: id });
      statuses.set(id, status);
    }
    const accepted = [...statuses].filter(([, status]) => status === 202).map(([id]) => id);
    const refused = [...statuses.values()].filter((status) => status !== 202);
    expect(new Set(refused)).toEqual(new Set([507]));
    expect(accepted.length).toBeGreaterThan(sends / 4);
    process.kill(pid, "SIGTERM");
    expect((await daemon.exited).signal).toBeNull();

    await peer.start();
    const stored = (await peer.outbox()).map((row) => row.client_message_id);
    expect(accepted.filter((id) => !stored.includes(id))).toEqual([]);
    const delivered = await until("every accepted message has come back", async () => {
      const ids = (await peer.inbox()).map((item) => item.client_message_id);
      return accepted.every((id) => ids.includes(id)) ? ids : undefined;
    });
    expect(new Set(delivered).size).toBe(delivered.length);
    await peer.kill("SIGTERM");
  });
});

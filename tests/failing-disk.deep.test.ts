// Writes and flushes that fail now and then, injected below daemon and broker by strace: whatever was answered with 2xx is
// there after a restart, lands once, and the audit balances (MSG-1, MSG-2). Needs strace; without it the test says so, and fails where every test must run.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { countUnsettled, expectAuditBalances, expectDeliveredOnce } from "./support/oracle.ts";
import { claudemeshBin, LongRunning } from "./support/process.ts";
import { type Sent, sendUntilAnswered } from "./support/senders.ts";
import { until, untilOnline, World } from "./support/world.ts";

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

// A broker writes many sends at once: faults so close that every such transaction meets one would stop it for good.
const brokerCases = [
  { what: "flushes fail with EIO", inject: ["fdatasync,fsync:error=EIO:when=30+7"] },
  { what: "writes fail with ENOSPC", inject: ["pwrite64:error=ENOSPC:when=200+303"] },
];

/** The product under strace, with faults in what it does to these databases and their logs. */
function failing(databases: readonly string[], inject: readonly string[]): string[] {
  const faults = inject.flatMap((rule) => ["-e", `inject=${rule}`]);
  const paths = databases.flatMap((path) => ["-P", path, "-P", `${path}-wal`]);
  const trace = ["-e", "trace=pwrite64,fdatasync,fsync", "-o", "/dev/null"];
  return ["strace", "-f", "-qq", ...trace, ...paths, ...faults, claudemeshBin];
}

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
    const daemon = new LongRunning<{ pid: number }>(["daemon", "up", "--mesh", world.mesh, "--foreground"], {
      home: peer.home,
      wrapper: failing([join(peer.folder, "outbox.db"), join(peer.folder, "inbox.db")], inject),
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
    await until("the outbox is done", async () => (await peer.outbox()).every((row) => row.status === "done"));
    await expectAuditBalances(peer);
    await peer.kill("SIGTERM");
  });

  test.for(brokerCases)("never makes the broker accept what is not there: $what", async ({ what, inject }) => {
    const peer = await world.addPeer(`broker-${what.replaceAll(" ", "-")}`);
    await world.broker.kill("SIGTERM");
    const { pid } = await world.startBroker({ wrapper: failing([world.storePath], inject) });
    await peer.start();
    const sent: Sent[] = Array.from({ length: 60 }, (_, n) => ({
      id: `broker-${what}-${n}`.replaceAll(" ", "-"),
      text: `text ${n}`,
      answered: false,
    }));
    for (const one of sent) await sendUntilAnswered(() => peer.client, "@self", one);
    const done = await until("the broker says that it has some", async () => {
      const rows = (await peer.outbox()).filter((row) => row.status === "done");
      return rows.length >= 10 ? rows : undefined;
    });
    process.kill(pid, "SIGKILL");
    await world.broker.exited;
    const db = new DatabaseSync(world.storePath, { readOnly: true });
    const stored = new Set(
      db
        .prepare("SELECT client_message_id AS id FROM client_message_dedupe")
        .all()
        .map(({ id }) => id),
    );
    db.close();
    expect(done.map((row) => row.client_message_id).filter((id) => !stored.has(id))).toEqual([]);

    await world.startBroker();
    await until("the outbox is done", async () => (await peer.outbox()).every((row) => row.status === "done"));
    await until("every delivery is settled", () => countUnsettled(world) === 0);
    await expectDeliveredOnce(peer, sent);
    // All may have been done before the broker was killed: then nothing above has waited for the daemon to find it again.
    await untilOnline(peer);
    await expectAuditBalances(peer);
    await peer.kill("SIGTERM");
  });
});

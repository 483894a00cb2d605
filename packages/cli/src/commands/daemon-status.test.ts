// `claudemesh daemon status` and `doctor` going red, each trouble made for real: a broker and a daemon in this process.
import { rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { FindingCode } from "@claudemesh/client/daemon";
import { meshPaths, readMeshConfig, writeMeshConfig } from "@claudemesh/client/home";
import { startDaemon } from "@claudemesh/daemon/start";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import {
  callBroker,
  makeTemporaryFolder,
  readAdminToken,
  startTestBroker,
} from "../../../../tests/support/broker-harness.ts";
import { makeCertificate } from "../../../../tests/support/self-signed.ts";
import { asMember } from "../mesh/member.ts";
import { createMembership } from "../mesh/membership.ts";
import { buildProgram } from "../program.ts";
import { pathsFor } from "../shell.ts";
import { createRecordingShell } from "../testing/recording-shell.ts";

afterEach(() => {
  process.exitCode = undefined;
});

type Found = { readonly code?: FindingCode; readonly status: string; readonly means: string; readonly fix?: string };

async function runIn(home: string, path: string, ...args: string[]) {
  process.exitCode = undefined;
  const shell = createRecordingShell({ home });
  const program = await buildProgram(shell, (entry) => entry.path === path);
  await program.parseAsync([...path.split(" "), ...args], { from: "user" });
  return { code: process.exitCode ?? 0, out: shell.printed.join("\n"), err: shell.complaints.join("\n") };
}

/** Codes of what status and doctor find, and whether both agree on the exit code. */
async function look(home: string): Promise<{ codes: string[]; exitCodes: number[] }> {
  const status = await runIn(home, "daemon status", "--json");
  const doctor = await runIn(home, "doctor", "--json");
  const { findings } = JSON.parse(status.out) as { findings: Found[] };
  const { checks } = JSON.parse(doctor.out) as { checks: Found[] };
  const reported = checks.flatMap(({ code }) => (code === undefined || code === "disk_low" ? [] : [code]));
  const codes = findings.flatMap(({ code }) => (code === undefined || code === "disk_low" ? [] : [code]));
  expect(reported.toSorted()).toEqual(codes.toSorted());
  return { codes: codes.toSorted(), exitCodes: [status.code, doctor.code] };
}

async function startWorld(flags: Record<string, string> = {}) {
  let aheadMs = 0;
  const folder = makeTemporaryFolder();
  const time = { wallMs: () => Date.now() + aheadMs, monotonicMs: () => performance.now() + aheadMs };
  const broker = await startTestBroker({ folder, time, flags });
  const home = makeTemporaryFolder();
  await createMembership({
    home,
    mesh: "acme",
    broker: broker.url,
    adminToken: readAdminToken(broker),
    name: "alice",
  });
  const daemon = await startDaemon({ home, mesh: "acme", env: {} });
  onTestFinished(() => daemon.stop());
  const shell = createRecordingShell({ home });
  const call = (operation: Parameters<Parameters<Parameters<typeof asMember>[2]>[0]>[0], input: object) =>
    asMember(shell, pathsFor(shell, {}), (ask) => ask(operation, input));
  await vi.waitFor(async () => {
    const { out } = await runIn(home, "daemon status", "--json");
    expect(JSON.parse(out).broker.state).toBe("online");
  }, 10_000);
  return {
    broker,
    daemon,
    home,
    call,
    storePath: `${folder}/broker.db`,
    setBrokerAhead: (ms: number) => {
      aheadMs = ms;
    },
  };
}

type World = Awaited<ReturnType<typeof startWorld>>;

const claim = { claim_id: "c", inputs_fingerprint: "a".repeat(64), lease_s: 1 };

const troubles: [name: string, code: FindingCode, make: (world: World) => Promise<void>][] = [
  ["a broker that went away", "broker_away", ({ broker }) => broker.stop()],
  [
    "a parked job",
    "parked_jobs",
    async ({ call }) => {
      await call("queue.create", { queue: "jobs", max_deliveries: 1 });
      await call("send", { client_message_id: "m1", destination: { kind: "queue", ref: "jobs" }, body: "x" });
      const lease = { queue: "jobs", lease_request_id: "r", max: 1, lease_s: 60 };
      const { items, lease_token } = (await call("queue.lease", lease)) as {
        items: { broker_message_id: string }[];
        lease_token: string;
      };
      const broker_message_ids = items.map(({ broker_message_id }) => broker_message_id);
      await call("queue.nack", { queue: "jobs", lease_token, broker_message_ids });
    },
  ],
  [
    "an uncertain key",
    "once_uncertain",
    async ({ call }) => {
      await call("once.claim", { key: "deploy", ...claim });
      await vi.waitFor(async () => {
        expect(await call("once.list", { state: "uncertain" })).toMatchObject({ items: [{ key: "deploy" }] });
      }, 10_000);
    },
  ],
  [
    "a broker whose clock is ten minutes ahead",
    "clock_off",
    async ({ setBrokerAhead }) => {
      // Less than a sleep is: connections stay.
      setBrokerAhead(250_000);
      setBrokerAhead(500_000);
    },
  ],
  [
    "what a night's check has found",
    "rows_do_not_fit",
    async ({ storePath }) => {
      const db = new DatabaseSync(storePath, { timeout: 5_000 });
      db.exec(`INSERT INTO mesh_housekeeping (mesh_id, removed_up_to, checked_at, check_ended_at, check_found, check_rules)
        SELECT id, 0, 1, 1, 2, 'history_gap' FROM mesh`);
      db.close();
    },
  ],
  [
    "a store that takes no writes",
    "store_unavailable",
    async ({ broker, storePath }) => {
      const db = new DatabaseSync(storePath, { timeout: 5_000 });
      db.exec(`CREATE TRIGGER full BEFORE UPDATE ON broker_lease BEGIN SELECT RAISE(ABORT, 'disk full'); END`);
      db.close();
      await vi.waitFor(async () => expect((await callBroker(broker.url, "GET", "/readyz")).status).toBe(503), {
        timeout: 10_000,
        interval: 100,
      });
    },
  ],
];

describe("the status of a daemon and the doctor", () => {
  test("find nothing where nothing is wrong, and end with 0", async () => {
    const { home } = await startWorld();
    expect((await look(home)).codes).toEqual([]);
    const { out } = await runIn(home, "daemon status");
    expect(out).toContain("Nothing is wrong.");
  });

  test.each(troubles)("go red for %s", async (_, code, make) => {
    const world = await startWorld();
    await make(world);
    await vi.waitFor(async () => expect((await look(world.home)).codes).toContain(code), 10_000);
    const { codes, exitCodes } = await look(world.home);
    expect(codes).toEqual([code]);
    expect(exitCodes).toEqual([1, 1]);
    const { out } = await runIn(world.home, "daemon status");
    expect(out).toContain(`fail  ${code}: `);
    expect(out).toMatch(/^status +degraded$/m);
  });

  test("go red for a certificate that ends within two weeks", async () => {
    const folder = makeTemporaryFolder();
    const { cert, key } = makeCertificate(folder, "broker");
    const broker = await startTestBroker({ folder, flags: { "tls-cert": cert, "tls-key": key } });
    const { readCertificateEnd } = await import("@claudemesh/client/internal/findings-questions");
    const { judgeCertificate } = await import("@claudemesh/client/internal/findings");
    const endsAtMs = await readCertificateEnd(broker.url);
    expect(judgeCertificate(endsAtMs, Date.now())).toMatchObject([{ code: "certificate_ends", status: "fail" }]);
    expect(await readCertificateEnd(broker.url.replace("https:", "http:"))).toBeUndefined();
    expect(await readCertificateEnd("https://127.0.0.1:1")).toBeUndefined();
  });

  test("ask all brokers of a home, and show what is wrong whole where the terminal is narrow", async () => {
    const { broker, daemon, home } = await startWorld();
    await daemon.stop();
    const paths = meshPaths(home, "acme");
    writeMeshConfig(paths, { ...readMeshConfig(paths), broker: "ws://127.0.0.1:1", brokers: [broker.url] });
    const { checks } = JSON.parse((await runIn(home, "doctor", "--json")).out) as {
      checks: (Found & { check: string })[];
    };
    const rows = checks.filter(({ check }) => /broker/.test(check)).map(({ check, status }) => [check, status]);
    expect(rows).toEqual([
      ["broker", "ok"],
      ["other brokers", "warn"],
    ]);
    const shell = createRecordingShell({ home, columns: 40 });
    await (await buildProgram(shell, ({ path }) => path === "doctor")).parseAsync(["doctor"], { from: "user" });
    const lost = checks.find(({ check }) => check === "other brokers");
    expect(shell.printed.join("\n")).toContain(`  other brokers: ${lost?.means}\n    ${lost?.fix}`);
  });

  test("say why the last daemon ended, and how to go on, where none runs", async () => {
    const { home, daemon } = await startWorld();
    await daemon.stop();
    const stopped = await runIn(home, "daemon status", "--json");
    expect(stopped.code).toBe(3);
    expect(JSON.parse(stopped.out)).toMatchObject({
      error: "daemon_unreachable",
      message: expect.stringContaining("as it was asked to"),
      last_run: { state: "ended", reason: "stopped", pid: process.pid },
    });
    const connect = () => {
      throw new Error("what was not foreseen");
    };
    await expect(startDaemon({ home, mesh: "acme", env: {}, connect })).rejects.toThrow();
    const failed = await runIn(home, "daemon status", "--json");
    expect(JSON.parse(failed.out)).toMatchObject({
      message: expect.stringContaining("what was not foreseen"),
      last_run: { state: "ended", reason: "start_failed" },
    });
    rmSync(meshPaths(home, "acme").config);
    await expect(startDaemon({ home, mesh: "acme", env: {} })).rejects.toThrow();
  });
});

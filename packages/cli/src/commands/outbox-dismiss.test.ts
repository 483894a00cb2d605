// Letting all rows go that nothing will send, from the command line.
import { DatabaseSync } from "node:sqlite";
import { createDaemonClient } from "@claudemesh/client/daemon";
import { meshPaths } from "@claudemesh/client/home";
import { startDaemon } from "@claudemesh/daemon/start";
import { afterEach, expect, onTestFinished, test } from "vitest";
import { makeTemporaryFolder, readAdminToken, startTestBroker } from "../../../../tests/support/broker-harness.ts";
import { createMembership } from "../mesh/membership.ts";
import { buildProgram } from "../program.ts";
import { createRecordingShell } from "../testing/recording-shell.ts";

afterEach(() => {
  process.exitCode = undefined;
});

async function dismiss(home: string, ...args: string[]) {
  process.exitCode = undefined;
  const shell = createRecordingShell({ home });
  const program = await buildProgram(shell, (entry) => entry.path === "daemon outbox dismiss");
  await program.parseAsync(["daemon", "outbox", "dismiss", ...args, "--why", "removed"], { from: "user" });
  return { code: process.exitCode ?? 0, out: shell.printed.join("\n"), err: shell.complaints.join("\n") };
}

/** A daemon without a broker, with a dead row and two that wait. */
async function startWithRows() {
  const [home, broker] = [makeTemporaryFolder(), await startTestBroker()];
  const adminToken = readAdminToken(broker);
  await createMembership({ home, mesh: "acme", broker: broker.url, adminToken, name: "alice" });
  await broker.stop();
  const started = await startDaemon({ home, mesh: "acme", env: {} });
  onTestFinished(() => started.stop());
  const paths = meshPaths(home, "acme");
  const daemon = createDaemonClient({ socketPath: paths.sock, timeoutMs: 10_000 });
  onTestFinished(() => daemon.close());
  for (const id of ["dead", "waits-1", "waits-2"])
    await daemon.send({ to: "#general", message: id, client_message_id: id });
  const change = (sql: string) => {
    const db = new DatabaseSync(paths.outboxDb);
    db.exec(sql);
    db.close();
  };
  change("UPDATE outbox SET status = 'dead', last_error = 'refused' WHERE client_message_id = 'dead'");
  const restart = async () => {
    await started.stop();
    const again = await startDaemon({ home, mesh: "acme", env: {} });
    onTestFinished(() => again.stop());
  };
  return { home, change, restart };
}

test("--all lets dead rows go, and of a member that was removed from the mesh also those that wait", async () => {
  const { home, change, restart } = await startWithRows();
  expect(await dismiss(home, "--all")).toMatchObject({ code: 0, out: "1 row was dismissed: removed" });
  expect(await dismiss(home, "waits-1")).toMatchObject({ code: 4 });
  change(`INSERT INTO daemon_state VALUES ('membership_ended', '{"at":1763600000000}')`);
  await restart();
  expect(await dismiss(home, "--all", "--json")).toMatchObject({ code: 0, out: '{"dismissed":2}' });
  expect(await dismiss(home, "--all")).toMatchObject({ out: "0 rows were dismissed: removed" });
});

test.each([[[]], [["a", "--all"]]])("it takes one row or all of them: %j", async (args) => {
  expect(await dismiss(makeTemporaryFolder(), ...args)).toMatchObject({
    code: 2,
    err: expect.stringContaining("Name one row"),
  });
});

// The settings of a mesh from the command line, against a real broker.
import { afterEach, expect, test } from "vitest";
import { makeTemporaryFolder, readAdminToken, startTestBroker } from "../../../../tests/support/broker-harness.ts";
import { createMembership } from "../mesh/membership.ts";
import { buildProgram } from "../program.ts";
import { createRecordingShell } from "../testing/recording-shell.ts";

afterEach(() => {
  process.exitCode = undefined;
});

async function runIn(home: string, path: string, ...args: string[]) {
  process.exitCode = undefined;
  const shell = createRecordingShell({ home });
  const program = await buildProgram(shell, (entry) => entry.path === path);
  await program.parseAsync([...path.split(" "), ...args], { from: "user" });
  return { code: process.exitCode ?? 0, out: shell.printed.join("\n"), err: shell.complaints.join("\n") };
}

async function startOwner(): Promise<string> {
  const [home, broker] = [makeTemporaryFolder(), await startTestBroker()];
  const adminToken = readAdminToken(broker);
  await createMembership({ home, mesh: "acme", broker: broker.url, adminToken, name: "alice" });
  return home;
}

test("mesh set changes a setting that mesh settings shows, and sets it back", async () => {
  const home = await startOwner();
  expect((await runIn(home, "mesh set", "max_topics", "7")).out).toContain("max_topics is 7 now");
  expect((await runIn(home, "mesh settings")).out).toMatch(/max_topics +7 +10000 +1000000/);
  expect((await runIn(home, "mesh set", "dm_policy", "any", "--json")).out).toBe('{"key":"dm_policy","value":"any"}');
  expect((await runIn(home, "mesh set", "max_topics", "default")).out).toContain("max_topics is 10000 now");
});

test("mesh set says what a key takes", async () => {
  const home = await startOwner();
  const wrong = await runIn(home, "mesh set", "dm_policy", "maybe");
  expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining("sealed or any") });
  await expect(runIn(home, "mesh set", "colour", "red")).rejects.toMatchObject({ code: "commander.invalidArgument" });
});

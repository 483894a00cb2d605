// What the commands for webhooks say of one that is not there, against a real broker.
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

test("webhook delete says that it is gone once, and afterwards that there is none", async () => {
  const [home, broker] = [makeTemporaryFolder(), await startTestBroker()];
  const adminToken = readAdminToken(broker);
  await createMembership({ home, mesh: "acme", broker: broker.url, adminToken, name: "alice" });
  await runIn(home, "webhook create", "ci", "--url", "https://ci.example.org/hook");
  expect(await runIn(home, "webhook delete", "ci", "--yes")).toMatchObject({
    code: 0,
    out: expect.stringContaining("is gone"),
  });
  const again = await runIn(home, "webhook delete", "ci", "--yes");
  expect(again).toMatchObject({ code: 5, out: "", err: expect.stringContaining("There is no webhook ci") });
});

test.each(["delete", "deliveries", "replay"])("webhook %s refuses what is no name as wrong usage", async (command) => {
  const usage = { code: "commander.invalidArgument" };
  await expect(runIn(makeTemporaryFolder(), `webhook ${command}`, "no/such")).rejects.toMatchObject(usage);
});

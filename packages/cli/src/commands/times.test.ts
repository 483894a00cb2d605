// Times and members as commands show them, through a daemon: local or UTC, by name, and --json as it is.
import { startDaemon } from "@claudemesh/daemon/start";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { makeTemporaryFolder, readAdminToken, startTestBroker } from "../../../../tests/support/broker-harness.ts";
import { asMember } from "../mesh/member.ts";
import { createMembership } from "../mesh/membership.ts";
import { setDisplay } from "../output/display.ts";
import { buildProgram } from "../program.ts";
import { pathsFor } from "../shell.ts";
import { createRecordingShell } from "../testing/recording-shell.ts";

const zone = process.env.TZ;

beforeEach(() => {
  process.env.TZ = "Asia/Kolkata";
});

afterEach(() => {
  process.env.TZ = zone;
  process.exitCode = undefined;
  setDisplay({});
});

async function runIn(home: string, words: string, ...more: string[]) {
  const shell = createRecordingShell({ home });
  const program = await buildProgram(shell, (entry) => entry.path === words);
  await program.parseAsync([...words.split(" "), ...more], { from: "user" });
  return shell.printed.join("\n");
}

async function startWithThings() {
  const broker = await startTestBroker();
  const home = makeTemporaryFolder();
  const adminToken = readAdminToken(broker);
  await createMembership({ home, mesh: "acme", broker: broker.url, adminToken, name: "alice" });
  const daemon = await startDaemon({ home, mesh: "acme", env: {} });
  onTestFinished(() => daemon.stop());
  await asMember(createRecordingShell({ home }), pathsFor(createRecordingShell({ home }), {}), async (call) => {
    await call("queue.create", { queue: "jobs" });
    await call("send", { client_message_id: "q1", destination: { kind: "queue", ref: "jobs" }, body: "work" });
    await call("once.claim", { key: "k", inputs_fingerprint: "a".repeat(64), claim_id: "c", lease_s: 60 });
  });
  await runIn(home, "send", "@self", "hello", "--id", "m-1");
  await vi.waitFor(async () => expect(await runIn(home, "inbox")).toContain("hello"), 10_000);
  return home;
}

const iso = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/;
const local = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/;

test("commands that print times print them locally, or as ISO 8601 in UTC with --utc, and keys by name or short", async () => {
  const home = await startWithThings();
  const commands: [string, ...string[]][] = [
    ["inbox"],
    ["daemon outbox list"],
    ["daemon outbox inspect", "m-1"],
    ["daemon status"],
    ["daemon logs", "--lines", "1"],
    ["status", "m-1"],
    ["queue list"],
    ["once list"],
    ["once", "k", "--show"],
  ];
  for (const [words, ...more] of commands) {
    const people = await runIn(home, words, ...more);
    expect(people, words).toMatch(local);
    expect(people, words).not.toMatch(iso);
    const table = people.replace(/^The key that this home trusts.*$/m, "");
    expect(table, words).not.toMatch(/[0-9a-f]{64}/);
    const utc = await runIn(home, words, ...more, "--utc");
    expect(utc, words).toMatch(iso);
    expect(utc, words).not.toMatch(local);
  }
  expect(await runIn(home, "once list")).toMatch(/k +running +1 .* alice$/m);
  expect(await runIn(home, "mesh members")).toMatch(/^alice +owner +[0-9a-f]{12}$/m);
  expect(await runIn(home, "mesh members", "--keys")).toMatch(/^alice +owner +[0-9a-f]{64}$/m);
});

test("--json is the same with --utc and without, with whole keys and milliseconds", async () => {
  const home = await startWithThings();
  const plain = await runIn(home, "inbox", "--json");
  expect(await runIn(home, "inbox", "--json", "--utc")).toBe(plain);
  expect(JSON.parse(plain)).toMatchObject({
    items: [{ received_at: expect.any(Number), sender_pubkey: expect.stringMatching(/^[0-9a-f]{64}$/) }],
  });
});

// Queues, topics and keys of once from the command line: through a daemon, and from the broker where none runs.
import { startDaemon } from "@claudemesh/daemon/start";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { makeTemporaryFolder, readAdminToken, startTestBroker } from "../../../../tests/support/broker-harness.ts";
import { asMember } from "../mesh/member.ts";
import { createMembership } from "../mesh/membership.ts";
import { buildProgram } from "../program.ts";
import { pathsFor } from "../shell.ts";
import { createRecordingShell } from "../testing/recording-shell.ts";

afterEach(() => {
  process.exitCode = undefined;
});

async function runIn(home: string, path: string, ...args: string[]) {
  const shell = createRecordingShell({ home });
  const program = await buildProgram(shell, (entry) => entry.path === path);
  await program.parseAsync([...path.split(" "), ...args], { from: "user" });
  return { out: shell.printed.join("\n"), err: shell.complaints.join("\n") };
}

async function startWithThings() {
  let wallMs = Date.now();
  const broker = await startTestBroker({ time: { wallMs: () => wallMs, monotonicMs: () => wallMs } });
  const home = makeTemporaryFolder();
  await createMembership({
    home,
    mesh: "acme",
    broker: broker.url,
    adminToken: readAdminToken(broker),
    name: "alice",
  });
  const shell = createRecordingShell({ home });
  await asMember(shell, pathsFor(shell, {}), async (call) => {
    await call("topic.create", { name: "news" });
    await call("topic.subscribe", { name: "news" });
    await call("queue.create", { queue: "jobs" });
    await call("send", {
      client_message_id: "m1",
      destination: { kind: "queue", ref: "jobs" },
      body: "work",
    });
    const claim = { inputs_fingerprint: "a".repeat(64), claim_id: "c", lease_s: 60 };
    await call("once.claim", { key: "left", ...claim });
    wallMs += 61_000;
    await call("once.claim", { key: "runs", ...claim });
  });
  return home;
}

describe.each(["a daemon", "no daemon"])("with %s", (who) => {
  test("queue list, topic list and once list show what the broker has", async () => {
    const home = await startWithThings();
    if (who === "a daemon") {
      const daemon = await startDaemon({ home, mesh: "acme", env: {} });
      onTestFinished(() => daemon.stop());
      await vi.waitFor(async () => expect((await runIn(home, "queue list")).out).toContain("jobs"), 10_000);
    }
    const queues = await runIn(home, "queue list");
    expect(queues.out).toMatch(/QUEUE +WAITING +LEASED +PARKED/);
    expect(queues.out).toMatch(/jobs +1 +0 +0 +\d{4}-/);
    expect(queues.err.includes("asked directly")).toBe(who === "no daemon");
    expect(JSON.parse((await runIn(home, "topic list", "--json")).out)).toMatchObject({
      items: [{ name: "news", subscribed: true, subscribers: 1, messages: 0 }],
    });
    const keys = await runIn(home, "once list");
    expect(keys.out).toMatch(/left +uncertain +1/);
    expect(keys.out).toMatch(/runs +running +1/);
    expect(keys.out).toContain("claudemesh once left --resolve done --epoch 1");
    const uncertain = await runIn(home, "once list", "--uncertain", "--json");
    expect(JSON.parse(uncertain.out)).toMatchObject({ items: [{ key: "left", state: "uncertain" }] });
  });
});

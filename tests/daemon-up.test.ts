// `claudemesh daemon up` and what it answers for: success is a daemon that got through, or one that says why it waits.
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { runCli } from "./support/process.ts";
import { World } from "./support/world.ts";

let world: World;
const homes: string[] = [];

afterEach(async () => {
  for (const home of homes.splice(0)) await runCli(["daemon", "down"], { home });
  await world.end();
});

async function up(home: string) {
  homes.push(home);
  const { code, stdout, stderr } = await runCli(["daemon", "up", "--json"], { home });
  return { code, value: JSON.parse(stdout.trim().split("\n").at(-1) ?? "{}"), stderr };
}

describe("claudemesh daemon up", () => {
  test("succeeds once the daemon is connected, and, while the broker is away, says why it waits", async () => {
    world = new World();
    const [alice, bob] = await world.startWithPair();
    expect(await up(alice.home)).toMatchObject({ code: 0, value: { event: "ready", broker: { state: "online" } } });
    await world.broker.kill("SIGTERM");
    const waiting = await up(bob.home);
    expect(waiting).toMatchObject({
      code: 0,
      value: { event: "ready", broker: { state: "offline", reason: "unreachable" } },
    });
    const text = await runCli(["daemon", "restart"], { home: bob.home });
    expect(text.stdout).toMatch(/Broker +not connected \(unreachable: .+\); sends are kept/);
  });

  test("does not say that no broker is there before the daemon has asked the others that it knows", async () => {
    world = new World();
    const [alice] = await world.startWithPair();
    await world.broker.kill("SIGTERM");
    const config = join(alice.home, "daemon", "acme", "config.toml");
    // The first one that is asked is a port on which nothing listens.
    const text = readFileSync(config, "utf8").replace(
      /^broker = .*$/m,
      `broker = "http://127.0.0.1:1"\nbrokers = ["${world.brokerUrl}"]`,
    );
    writeFileSync(config, text);
    const offline = await up(alice.home);
    expect(offline).toMatchObject({ code: 0, value: { broker: { state: "offline", reason: "unreachable" } } });
    const vain = await runCli(["daemon", "reconnect", "--json"], { home: alice.home });
    expect(vain.code).toBe(3);
    await runCli(["daemon", "down"], { home: alice.home });
    await world.startBroker();
    expect(await up(alice.home)).toMatchObject({ code: 0, value: { broker: { state: "online" } } });
    const reconnected = await runCli(["daemon", "reconnect", "--json"], { home: alice.home });
    expect([reconnected.code, JSON.parse(reconnected.stdout).broker.state]).toEqual([0, "online"]);
  });

  test("keeps the reason of a start that failed, and the doctor names the file", async () => {
    world = new World();
    const [alice] = await world.startWithPair();
    const config = join(alice.home, "daemon", "acme", "config.toml");
    const said = readFileSync(config, "utf8");
    writeFileSync(config, said.replace(/^broker = .*$/m, 'broker = "nonsense"'));
    const failed = await up(alice.home);
    expect(failed).toMatchObject({ code: 1, value: { message: expect.stringContaining(config) } });
    const status = JSON.parse((await runCli(["daemon", "status", "--json"], { home: alice.home })).stdout);
    expect(status).toMatchObject({ last_run: { state: "ended" }, message: expect.stringContaining("nonsense") });
    const doctor = JSON.parse((await runCli(["doctor", "--json"], { home: alice.home })).stdout);
    const row = doctor.checks.find(({ check }: { check: string }) => check === "settings");
    expect(row).toMatchObject({ status: "fail", means: expect.stringContaining("nonsense") });
  });

  test("fails where the daemon ends in its first seconds, with the reason, which stays to be read", async () => {
    world = new World(["--connection-policy", "prefer_oldest"]);
    const [alice] = await world.startWithPair();
    expect((await up(alice.home)).code).toBe(0);
    const copy = join(world.folder, "copy");
    cpSync(join(alice.home, "daemon", "acme", "keypair.json"), join(copy, "daemon", "acme", "keypair.json"));
    cpSync(join(alice.home, "daemon", "acme", "config.toml"), join(copy, "daemon", "acme", "config.toml"));
    const second = await up(copy);
    expect(second.code).toBe(1);
    expect(second.value).toMatchObject({
      error: "daemon_ended",
      reason: "older_connection_kept",
      message: expect.stringContaining("claudemesh daemon remint --mesh acme"),
    });
    const status = await runCli(["daemon", "status", "--json"], { home: copy });
    expect(status.code).toBe(3);
    const body = JSON.parse(status.stdout);
    expect(body.last_run).toMatchObject({ state: "ended", reason: "older_connection_kept" });
    expect(body.message).not.toContain("claudemesh daemon up");
    const doctor = JSON.parse((await runCli(["doctor", "--json"], { home: copy })).stdout);
    const row = doctor.checks.find(({ check }: { check: string }) => check === "daemon");
    expect(row).toMatchObject({ status: "fail", fix: expect.stringContaining("daemon remint") });
    expect(row.fix).not.toContain("daemon up");
  });
});

// A member that lives for one run: as a build job starts it, uses it and leaves it.
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LongRunning, runCli, runJson } from "./support/process.ts";
import { type Peer, until, World } from "./support/world.ts";

type Ready = {
  readonly socket: string;
  readonly ephemeral?: boolean;
  readonly name?: string;
  readonly expires_at?: number;
};

let world: World;
let alice: Peer;
let home = "";
const started: LongRunning<Ready>[] = [];

beforeEach(async () => {
  world = new World();
  await world.startBroker();
  alice = await world.addPeer("alice");
  home = join(world.folder, "job");
  mkdirSync(home, { mode: 0o700 });
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((daemon) => daemon.kill()));
  await world.end();
});

const invite = async () => (await runJson<{ invite: string }>(["mesh", "invite"], { home: alice.home })).invite;
const up = (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const daemon = new LongRunning<Ready>(["daemon", "up", "--foreground", ...args], { home, env });
  started.push(daemon);
  return daemon;
};
const received = (body: string) =>
  until(`alice has received ${body}`, async () => {
    const items = await alice.inbox();
    return items.find((item) => item.body === body);
  });
const traces = () => readdirSync(home, { recursive: true }).map(String).sort();

describe("an ephemeral daemon", () => {
  test("is used like any other from its home, and leaves nothing there but its log and how it ended", async () => {
    await alice.start();
    const daemon = up(["--ephemeral", "--invite", await invite(), "--name", "job-1"]);
    expect(await daemon.ready).toMatchObject({ ephemeral: true, name: "job-1", expires_at: expect.any(Number) });
    await runJson(["send", "@alice", "from the job", "--mesh", "acme"], { home });
    expect(await received("from the job")).toMatchObject({ sender_name: "job-1" });
    expect(traces().filter((name) => name.includes("keypair"))).toEqual([]);
    const restart = await runCli(["daemon", "restart"], { home });
    expect(restart.code).toBe(1);
    expect(restart.stderr).toContain("ephemeral");
    const doctor = await runJson<{ ok: boolean }>(["doctor"], { home });
    expect(doctor.ok).toBe(true);

    await daemon.kill("SIGTERM");
    expect(await daemon.exited).toEqual({ code: 0, signal: null });
    const left = ["daemon.log", "last_run.json", "lock.db"].map((name) => `daemon/acme/${name}`);
    expect(traces()).toEqual(["daemon", "daemon/acme", ...left]);
    expect((await runCli(["inbox"], { home })).code).toBe(5);
  });

  test("ends by itself when its time is over", async () => {
    const daemon = up(["--ephemeral", "--ttl", "1s", "--invite", await invite()]);
    await daemon.ready;
    expect(await daemon.exited).toEqual({ code: 0, signal: null });
    expect(existsSync(join(home, "daemon", "acme", "config.toml"))).toBe(false);
  });

  test("fails where it takes accepted messages with it", async () => {
    const daemon = up(["--ephemeral", "--invite", await invite()]);
    await daemon.ready;
    await world.broker.kill();
    await runJson(["send", "#general", "never arrives"], { home });
    await daemon.kill("SIGTERM");
    expect((await daemon.exited).code).toBe(1);
    expect(daemon.stderr).toContain("1 message that was accepted here");
  });

  test("that was killed leaves data that the next start removes", async () => {
    const first = up(["--ephemeral", "--invite", await invite()]);
    await first.ready;
    await first.kill("SIGKILL");
    expect(traces().some((name) => name.includes("ephemeral-"))).toBe(true);
    const second = up(["--ephemeral", "--invite", await invite()]);
    await second.ready;
    expect(readdirSync(join(home, "daemon", "acme")).filter((name) => name.startsWith("ephemeral-"))).toHaveLength(1);
    await second.kill("SIGTERM");
    expect(traces().filter((name) => !/daemon|lock/.test(name))).toEqual([]);
  });
});

describe("on a build machine", () => {
  const ci = { GITHUB_ACTIONS: "true" };

  test("a daemon with an invite and no keys is ephemeral, in the background too, and no argument shows the invite", async () => {
    const text = await invite();
    const env = { ...ci, CLAUDEMESH_INVITE: text };
    const ready = await runJson<Ready & { pid: number }>(["daemon", "up"], { home, env });
    expect(ready).toMatchObject({ ephemeral: true });
    if (existsSync("/proc/self/cmdline")) {
      expect(readFileSync(`/proc/${ready.pid}/cmdline`, "utf8")).not.toContain(text);
    }
    expect(await runJson(["daemon", "down"], { home })).toMatchObject({ stopped: true });
    expect(traces().some((name) => name.includes("ephemeral-"))).toBe(false);
  });

  test("--persistent joins and keeps its keys, and so does every start after it", async () => {
    const first = up(["--persistent", "--invite", await invite(), "--name", "runner"], ci);
    expect((await first.ready).ephemeral).toBeUndefined();
    await first.kill("SIGTERM");
    expect(existsSync(join(home, "daemon", "acme", "keypair.json"))).toBe(true);
    const second = up(["--invite", await invite()], ci);
    expect((await second.ready).ephemeral).toBeUndefined();
    const members = await runJson<{ items: { name: string }[] }>(["mesh", "members"], { home: alice.home });
    expect(members.items.map(({ name }) => name).sort()).toEqual(["alice", "runner"]);
  });
});

test("what contradicts itself is wrong usage", async () => {
  const text = await invite();
  for (const args of [
    ["--ephemeral"],
    ["--ephemeral", "--persistent", "--invite", text],
    ["--ttl", "1h"],
    ["--persistent", "--ttl", "1h", "--invite", text],
    ["--ephemeral", "--ttl", "soon", "--invite", text],
    ["--ephemeral", "--invite", "garbage"],
    ["--ephemeral", "--mesh", "other", "--invite", text],
    ["--name", "n"],
  ]) {
    expect((await runCli(["daemon", "up", ...args], { home })).code, args.join(" ")).toBe(2);
  }
});

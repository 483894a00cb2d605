// `claudemesh once` as users meet it: real processes on several hosts' homes, killed with SIGKILL at every step. Whatever
// dies, the command has run at most once unless it was resolved as not done (REG-9).
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createHttpCall } from "@claudemesh/client/broker-http";
import { createOnce, OnceUncertain } from "@claudemesh/client/once";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type CliResult, claudemeshBin, runCli, runJson } from "./support/process.ts";
import { type Peer, until, World } from "./support/world.ts";

const world = new World();
let alice: Peer;
let bob: Peer;
let runs = 0;

beforeAll(async () => {
  [alice, bob] = await world.startWithPair();
});
afterAll(() => world.end());

const children = new Set<ChildProcess>();
afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
});

let key = "";
let trace = "";
beforeEach(() => {
  runs += 1;
  key = `k${runs}`;
  trace = join(world.folder, `trace-${runs}`);
  writeFileSync(trace, "");
});

const traced = () =>
  readFileSync(trace, "utf8")
    .split("\n")
    .filter((line) => line !== "");

/** A shell command that leaves a line in the trace each time it runs. */
const leavesTrace = (more = "") => ["sh", "-c", `echo ran >> ${trace}; ${more}`];
const once = (peer: Peer, args: readonly string[], command: readonly string[]): Promise<CliResult> =>
  runCli(["once", key, ...args, "--", ...command], { home: peer.home });

/** Started and left running, so that it can be killed. */
function startOnce(peer: Peer, args: readonly string[], command: readonly string[]) {
  const child = spawn(claudemeshBin, ["once", key, ...args, "--", ...command], {
    env: { ...process.env, CLAUDEMESH_HOME: peer.home },
    stdio: ["ignore", "pipe", "pipe"],
    // A group of its own: killing the group kills the launcher, the program and the command with it.
    detached: true,
  });
  children.add(child);
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  return {
    exited,
    kill: async () => {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      await exited;
    },
  };
}

type Shown = { state: string; epoch: number | null; epochs: { outcome?: string; settled_by_pubkey?: string }[] };
const show = (peer: Peer) => runJson<Shown>(["once", key, "--show"], { home: peer.home });
const becomes = (state: string) => until(`the key is ${state}`, async () => (await show(bob)).state === state, 30_000);

describe("claudemesh once", () => {
  test("runs the command, and later prints what it printed and exits as it did, on every host", async () => {
    const command = leavesTrace("echo out; echo err >&2; exit 7");
    const first = await once(alice, [], command);
    expect(first).toEqual({ code: 7, stdout: "out\n", stderr: "err\n" });
    expect(await once(bob, [], command)).toEqual(first);
    expect(await once(alice, [], command)).toEqual(first);
    expect(traced()).toEqual(["ran"]);
    const json = await runCli(["once", key, "--json", "--", ...command], { home: bob.home });
    expect(json.code).toBe(7);
    expect(JSON.parse(json.stdout)).toEqual({
      key,
      epoch: 1,
      ran: false,
      exit_code: 7,
      stdout: "out\n",
      stderr: "err\n",
    });
  });

  test("keeps bytes that are no text, and both ends of what is long", async () => {
    const command = ["sh", "-c", "printf '\\377\\000'; head -c 300000 /dev/zero | tr '\\0' x >&2; echo end >&2"];
    const first = await once(alice, [], command);
    expect(first.stderr).toHaveLength(300_004);
    const { stdout } = await runCli(["once", key, "--json", "--", ...command], { home: bob.home });
    expect(JSON.parse(stdout)).toMatchObject({ ran: false, stdout_base64: "/wA=", stderr_left_out_bytes: 276_004 });
    const replayed = await once(bob, [], command);
    expect(replayed.stderr).toContain("[claudemesh: 276004 bytes are left out here]");
    expect(replayed.stderr.endsWith("xend\n")).toBe(true);
  });

  test("refuses another command under the same key, and does not claim for one that does not exist", async () => {
    const missing = await once(alice, [], ["no-such-command-here"]);
    expect(missing).toMatchObject({ code: 5, stdout: "" });
    expect(missing.stderr).toContain("nothing was claimed");
    expect(await show(alice)).toMatchObject({ state: "absent" });
    await once(alice, [], ["true"]);
    const other = await once(bob, [], ["false"]);
    expect(other.code).toBe(4);
    expect(other.stderr).toContain("other inputs");
  });

  test.for([
    ["without a command", []],
    ["with a command and --show", ["--show", "--", "true"]],
    ["with --resolve and no epoch", ["--resolve", "done"]],
    ["with --epoch alone", ["--epoch", "1", "--", "true"]],
    ["with a result of what was not done", ["--resolve", "not-done", "--epoch", "1", "--result", "1"]],
    ["with a result that is no JSON", ["--resolve", "done", "--epoch", "1", "--result", "{"]],
    ["with a lease of days", ["--lease", "24h", "--", "true"]],
  ] as const)("is wrong usage %s", async ([, args]) => {
    const refused = await runCli(["once", key, ...args], { home: alice.home });
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain("--help");
  });

  test("started on two hosts at once runs on one, and both print the same", async () => {
    const command = leavesTrace("sleep 1; echo done");
    const [first, second] = await Promise.all([once(alice, [], command), once(bob, [], command)]);
    expect(first).toEqual({ code: 0, stdout: "done\n", stderr: "" });
    expect(second).toEqual(first);
    expect(traced()).toEqual(["ran"]);
  });

  test("does not wait with --no-wait: exit code 4", async () => {
    const go = join(world.folder, `go-${runs}`);
    const command = leavesTrace(`while [ ! -e ${go} ]; do sleep 0.05; done`);
    const running = startOnce(alice, [], command);
    await until("the command runs", () => traced().length === 1, 30_000);
    const refused = await once(bob, ["--no-wait"], command);
    expect(refused.code).toBe(4);
    expect(refused.stderr).toContain("running elsewhere");
    appendFileSync(go, "");
    await running.exited;
    expect(await once(bob, ["--no-wait"], command)).toMatchObject({ code: 0 });
    expect(traced()).toEqual(["ran"]);
  });

  test("keeps a key for longer than its lease while the command runs", async () => {
    const command = leavesTrace("sleep 5; echo long");
    const [first, second] = await Promise.all([once(alice, ["--lease", "3s"], command), once(bob, [], command)]);
    expect(first).toMatchObject({ code: 0, stdout: "long\n" });
    expect(second).toMatchObject({ code: 0, stdout: "long\n" });
    expect(traced()).toEqual(["ran"]);
  });
});

describe("a holder that is killed", () => {
  test("while the command runs leaves the key uncertain; it is not run again until it is resolved", async () => {
    const command = leavesTrace("sleep 60");
    const holder = startOnce(alice, ["--lease", "1s"], command);
    await until("the command runs", () => traced().length === 1, 30_000);
    await holder.kill();
    const waited = await once(bob, [], command);
    expect(waited.code).toBe(4);
    expect(waited.stderr).toContain(`claudemesh once ${key} --resolve not-done --epoch 1`);
    expect(traced()).toEqual(["ran"]);
    const resolved = await runCli(["once", key, "--resolve", "not-done", "--epoch", "1"], { home: bob.home });
    expect(resolved).toMatchObject({ code: 0, stderr: "" });
    expect(await show(alice)).toMatchObject({
      state: "released",
      epochs: [{ outcome: "not_done", settled_by_pubkey: bob.pubkey }],
    });
    const quick = leavesTrace("echo again");
    expect(await once(alice, [], quick)).toMatchObject({ code: 0, stdout: "again\n" });
    expect(await show(alice)).toMatchObject({ state: "done", epoch: 2 });
    expect(traced()).toEqual(["ran", "ran"]);
  });

  test("and whose command had ended well is resolved as done, with a result", async () => {
    const command = leavesTrace("sleep 60");
    const holder = startOnce(alice, ["--lease", "1s"], command);
    await until("the command runs", () => traced().length === 1, 30_000);
    await holder.kill();
    await becomes("uncertain");
    const result = JSON.stringify({ exit_code: 3, stdout: "by hand\n" });
    await runCli(["once", key, "--resolve", "done", "--epoch", "1", "--result", result], { home: bob.home });
    expect(await once(alice, [], command)).toEqual({ code: 3, stdout: "by hand\n", stderr: "" });
    expect(traced()).toEqual(["ran"]);
  });
});

/** Where the broker stands still, so that the holder can be killed there; then the broker comes back without it. */
describe("a holder that is killed while the broker", () => {
  const points = [
    // The first commit of a run is its claim, the second its record; leases are long enough not to be renewed.
    { at: "has not committed its claim", failpoint: "once.before_commit@1", ran: 0, state: "uncertain" },
    { at: "has committed its claim and not answered", failpoint: "once.after_commit@1", ran: 0, state: "uncertain" },
    { at: "has not committed its record", failpoint: "once.before_commit@2", ran: 1, state: "done" },
    { at: "has committed its record and not answered", failpoint: "once.after_commit@2", ran: 1, state: "done" },
  ] as const;

  test.for(points)("$at: the command ran $ran times, and is $state", async ({ failpoint, ran, state }) => {
    await world.broker.kill();
    // Long enough for the kill to come while the broker stands still; then it goes on as if nothing had been.
    await world.startBroker({ failpoints: `${failpoint}=delay:3000` });
    const holder = startOnce(alice, ["--lease", "4s"], leavesTrace());
    if (ran === 1) await until("the command runs", () => traced().length === 1, 30_000);
    // The broker does not answer while it stands at the fault point.
    const standsStill = async () => !(await answersSoon()) && !(await answersSoon());
    await until("the broker stands still", standsStill, 30_000);
    await holder.kill();
    await until("the broker goes on", answersSoon, 30_000);
    await becomes(state);
    expect(traced()).toHaveLength(ran);
    const later = await once(bob, [], leavesTrace());
    expect(later.code).toBe(state === "done" ? 0 : 4);
    expect(traced()).toHaveLength(ran);
    await world.broker.kill();
    await world.startBroker();
  });

  async function answersSoon(): Promise<boolean> {
    try {
      const response = await fetch(`${world.brokerUrl}/healthz`, { signal: AbortSignal.timeout(500) });
      return response.ok;
    } catch {
      return false;
    }
  }
});

describe("a broker that is killed", () => {
  test.for(["once.before_commit@1", "once.after_commit@1", "once.before_commit@2", "once.after_commit@2"])(
    "at %s and comes back: the command runs once and every caller gets its result",
    async (point) => {
      await world.broker.kill();
      await world.startBroker({ failpoints: `${point}=crash` });
      const first = once(alice, [], leavesTrace("echo survived"));
      await world.broker.exited;
      await world.startBroker();
      expect(await first).toMatchObject({ code: 0, stdout: "survived\n" });
      expect(await once(bob, [], leavesTrace("echo survived"))).toMatchObject({ code: 0, stdout: "survived\n" });
      expect(traced()).toEqual(["ran"]);
      expect(await show(bob)).toMatchObject({ state: "done", epoch: 1 });
    },
  );
});

describe("once in a program", () => {
  test("over HTTP with a member's token shares keys with the command line", async () => {
    const { token } = await runJson<{ token: string }>(["mesh", "token"], { home: bob.home });
    const { once: runIt } = createOnce({ call: createHttpCall({ broker: world.brokerUrl, mesh: world.mesh, token }) });
    const effect = async () => {
      appendFileSync(trace, "ran\n");
      return { exit_code: 5, stdout: "from a program\n" };
    };
    const stored = await runIt(key, ["true"], effect);
    expect(await runIt(key, ["true"], effect)).toEqual(stored);
    expect(await once(alice, [], ["true"])).toEqual({ code: 5, stdout: "from a program\n", stderr: "" });
    expect(traced()).toEqual(["ran"]);

    key = `${key}-other`;
    const killed = startOnce(alice, ["--lease", "1s"], leavesTrace("sleep 60"));
    await until("the command runs", () => traced().length === 2, 30_000);
    await killed.kill();
    const late = runIt(key, leavesTrace("sleep 60"), effect);
    await expect(late).rejects.toBeInstanceOf(OnceUncertain);
    expect(traced()).toHaveLength(2);
  });
});

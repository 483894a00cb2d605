// The command line as a user meets it: real processes, exit codes, and what is on which stream.
import { type ChildProcess, spawn } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { claudemeshBin, runCli, runJson } from "./support/process.ts";
import { type Peer, until, World } from "./support/world.ts";

const version = (
  JSON.parse(readFileSync(new URL("../packages/cli/package.json", import.meta.url), "utf8")) as {
    version: string;
  }
).version;

let home = "";
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "cm-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

describe("in an empty home", () => {
  test("--version says the version and nothing else", async () => {
    expect(await runCli(["--version"], { home })).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });

  test("mesh list finds nothing and says how to begin", async () => {
    const listed = await runCli(["mesh", "list"], { home });
    expect(listed).toMatchObject({ code: 0, stderr: "" });
    expect(listed.stdout).toContain("claudemesh up");
    expect(await runJson(["mesh", "list"], { home })).toEqual({ items: [] });
  });

  test.runIf(existsSync("/dev/full"))("output that cannot be written is a failure with a word about it", async () => {
    const wrapper = ["/bin/sh", "-c", 'exec "$0" "$@" > /dev/full', claudemeshBin];
    const { code, stderr } = await runCli(["mesh", "list"], { home, wrapper });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^claudemesh: The output cannot be written: ENOSPC.*\n$/),
    });
  });

  test.for([
    ["an unknown command", ["frobnicate"]],
    ["an unknown subcommand", ["daemon", "frobnicate"]],
    ["an unknown option", ["mesh", "list", "--frobnicate"]],
    ["a missing argument", ["send", "@self"]],
    ["a recipient beside --batch", ["send", "@self", "hello", "--batch", "-"]],
    ["an option that no line of --batch takes", ["send", "--batch", "-", "--priority", "now"]],
    ["one argument too many", ["mesh", "list", "more"]],
    ["a group alone", ["daemon"]],
    ["options that exclude each other", ["daemon", "outbox", "list", "--failed", "--done"]],
    ["a value that is not one of the choices", ["send", "@self", "x", "--priority", "loud"]],
    ["meta that is no JSON object", ["send", "@self", "x", "--meta", "[1]"]],
    ["meta that says the same key twice", ["send", "@self", "x", "--meta", '{"a":1,"a":2}']],
  ] as const)("%s is wrong usage: exit code 2, and help is named on stderr", async ([, args]) => {
    const plain = await runCli(args, { home });
    expect(plain).toMatchObject({ code: 2, stdout: "" });
    expect(plain.stderr).toMatch(/--help|Usage:/);
  });

  test("wrong usage is a JSON value too, where that was asked for", async () => {
    for (const args of [["frobnicate"], ["daemon"], ["send", "@self", "x", "--priority", "loud"]]) {
      const { code, stdout } = await runCli([...args, "--json"], { home });
      expect(code).toBe(2);
      expect(JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "")).toMatchObject({ error: "wrong_usage" });
    }
  });

  test("a daemon that cannot be started gives its reason", async () => {
    const none = await runCli(["daemon", "up", "--json"], { home });
    expect(none.code).toBe(5);
    expect(JSON.parse(none.stdout)).toMatchObject({ error: "not_found" });
    const folder = join(home, "daemon", "acme");
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, "config.toml"), "[mesh\n", { mode: 0o600 });
    const broken = await runCli(["daemon", "up", "--json"], { home });
    expect(broken.code).toBe(1);
    expect(JSON.parse(broken.stdout)).toMatchObject({ error: "files_unusable" });
    expect(broken.stderr).toContain("config.toml");
    expect(broken.stderr.match(/claudemesh: /g)).toHaveLength(1);
  });

  test("nothing is coloured where no terminal is, nor where NO_COLOR says so, and JSON and errors never are", async () => {
    const plain: [string[], Record<string, string>][] = [
      [["--help"], {}],
      [["--help"], { FORCE_COLOR: "1", NO_COLOR: "1" }],
      [["--help"], { FORCE_COLOR: "1", TERM: "dumb" }],
      [["frobnicate"], { FORCE_COLOR: "1" }],
      [["mesh", "list", "--json"], { FORCE_COLOR: "1" }],
    ];
    for (const [args, env] of plain) {
      const { stdout, stderr } = await runCli(args, { home, env });
      expect(stdout + stderr, args.join(" ")).not.toContain("\u001b");
    }
    expect((await runCli(["--help"], { home, env: { FORCE_COLOR: "1" } })).stdout).toContain("\u001b[1mMessages:");
  });
});

describe("with a mesh", () => {
  const world = new World();
  let alice: Peer;
  beforeAll(async () => {
    await world.startBroker();
    alice = await world.addPeer("alice");
  });
  afterAll(() => world.end());
  afterEach(async () => {
    await runCli(["daemon", "down"], { home: alice.home });
  });

  const up = () => runJson<{ pid: number }>(["daemon", "up"], { home: alice.home });
  const runningPid = async () =>
    (await runJson<{ daemon: { pid: number } }>(["daemon", "version"], { home: alice.home })).daemon.pid;

  test("a second daemon on the folder is refused with the reason, in the background as in the foreground", async () => {
    const { pid } = await up();
    for (const args of [
      ["daemon", "up"],
      ["daemon", "up", "--foreground"],
    ]) {
      const second = await runCli([...args, "--json"], { home: alice.home });
      expect(second.code).toBe(1);
      expect(JSON.parse(second.stdout)).toMatchObject({ error: "already_running", retryable: false });
      expect(second.stderr).toContain("running already");
    }
    expect(await runningPid()).toBe(pid);
  });

  test("restart ends the daemon and starts another, and starts one where none runs", async () => {
    const { pid } = await up();
    const restarted = await runJson<{ event: string; pid: number }>(["daemon", "restart"], { home: alice.home });
    expect(restarted.event).toBe("ready");
    expect(restarted.pid).not.toBe(pid);
    expect(await runningPid()).toBe(restarted.pid);
    await runCli(["daemon", "down"], { home: alice.home });
    const started = await runJson<{ pid: number }>(["daemon", "restart"], { home: alice.home });
    expect(await runningPid()).toBe(started.pid);
  });

  test("a home that is given as a relative path is the same home for the daemon in the background", async () => {
    const env = { CLAUDEMESH_HOME: basename(alice.home) };
    const ready = await runJson<{ socket: string }>(["daemon", "up"], {
      home: alice.home,
      cwd: dirname(alice.home),
      env,
    });
    expect(ready.socket).toBe(join(alice.folder, "sock"));
  });

  test("down says when there was nothing to stop", async () => {
    expect(await runJson(["daemon", "down"], { home: alice.home })).toEqual({ mesh: "acme", stopped: false });
  });

  test("logs are readable lines, or the file's own lines with --json, also while no daemon runs", async () => {
    await up();
    await runCli(["daemon", "down"], { home: alice.home });
    const log = join(alice.folder, "daemon.log");
    const line = { level: 40, time: "2030-01-31T12:00:05.000Z", event: "odd", msg: "a\u001b[31mred", to: "bob" };
    appendFileSync(log, `${JSON.stringify(line)}\n`);
    const shown = await runCli(["daemon", "logs", "--lines", "1"], { home: alice.home });
    expect(shown.stdout).toBe("2030-01-31 12:00:05 WARN  odd: a�[31mred to=bob\n");
    const raw = await runCli(["daemon", "logs", "--lines", "1", "--json"], { home: alice.home });
    expect(JSON.parse(raw.stdout)).toEqual(line);
    const all = await runCli(["daemon", "logs"], { home: alice.home });
    expect(all.stdout).toContain("daemon_started");
  });

  test("logs --follow shows what comes, through a rotation, until it is stopped", async () => {
    await up();
    const log = join(alice.folder, "daemon.log");
    const follower = new FollowedOutput(["daemon", "logs", "--follow", "--lines", "0"], alice.home);
    await until("the follower is there", () => {
      appendFileSync(log, '{"msg":"knock"}\n');
      return follower.stdout.includes("knock");
    });
    await runCli(["daemon", "down"], { home: alice.home });
    renameSync(log, `${log}.1`);
    writeFileSync(log, '{"msg":"after the rotation"}\n', { mode: 0o600 });
    await until("the new file is followed", () => follower.stdout.includes("after the rotation"));
    expect(await follower.stop()).toBe(0);
  });

  test("logs without a log say how to get one", async () => {
    const bob = await world.addPeer("bob");
    const none = await runCli(["daemon", "logs"], { home: bob.home });
    expect(none.code).toBe(5);
    expect(none.stderr).toContain("claudemesh daemon up");
  });

  test("a message with control characters cannot touch the terminal", async () => {
    await up();
    const text = "\u001b]0;owned\u0007\u001b[2Jhello\rworld\u202e";
    await runJson(["send", "@self", text], { home: alice.home });
    const shown = await until("it has arrived", async () => {
      const { stdout } = await runCli(["inbox"], { home: alice.home });
      return stdout.includes("hello") ? stdout : undefined;
    });
    expect(shown).toContain("�]0;owned��[2Jhello�world�");
    expect(shown.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
    const { items } = await runJson<{ items: { body: string }[] }>(["inbox"], { home: alice.home });
    expect(items.at(-1)?.body).toBe(text);
  });

  test("bytes on standard input that are no text travel as they are", async () => {
    await up();
    const folder = mkdtempSync(join(tmpdir(), "cm-"));
    const bytes = Buffer.from([0xff, 0x00, 0xfe, 0x0a]);
    writeFileSync(join(folder, "bytes"), bytes);
    const wrapper = ["/bin/sh", "-c", 'exec "$0" "$@" < "$BYTES"', claudemeshBin];
    await runJson(["send", "@self", "-", "--id", "raw-bytes"], {
      home: alice.home,
      wrapper,
      env: { BYTES: join(folder, "bytes") },
    });
    rmSync(folder, { recursive: true });
    const arrived = await until("it has arrived", async () => {
      const { items } = await runJson<{ items: { client_message_id: string; body_base64?: string }[] }>(["inbox"], {
        home: alice.home,
      });
      return items.find((item) => item.client_message_id === "raw-bytes");
    });
    expect(arrived.body_base64).toBe(bytes.toString("base64"));
  });
});

describe("a daemon of another version", () => {
  let server: Server;
  const asked: string[] = [];
  beforeEach(async () => {
    const folder = join(home, "daemon", "acme");
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, "config.toml"), "", { mode: 0o600 });
    asked.length = 0;
    server = createServer((request, response) => {
      asked.push(request.url ?? "");
      const answers: Record<string, [number, object]> = {
        "/v1/version": [200, { version: "99.0.0", pid: process.pid }],
        "/v1/health": [200, { status: "ok", broker: { state: "online" } }],
        "/v1/findings": [404, { error: "not_found", message: "no such route", retryable: false }],
        "/v1/send": [400, { error: "unknown_field", message: "what is that", retryable: false }],
      };
      const [status, body] = answers[request.url ?? ""] ?? [200, { items: [], next_cursor: null }];
      request.resume().on("end", () => {
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
      });
    });
    await new Promise<void>((resolve) => server.listen(join(folder, "sock"), resolve));
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const advice = /This command is version .*, and the daemon here is 99\.0\.0: run `claudemesh daemon restart`/;

  test.for(["daemon status", "inbox", "daemon outbox list"])(
    "is named once on stderr by %s, whose answer stays clean",
    async (command) => {
      const { code, stdout, stderr } = await runCli([...command.split(" "), "--json"], { home });
      expect(code).toBe(0);
      expect(stderr.trimEnd().split("\n")).toEqual([expect.stringMatching(advice)]);
      expect(JSON.parse(stdout)).toBeTypeOf("object");
    },
  );

  test("is asked by send only when it refused", async () => {
    const { code, stderr } = await runCli(["send", "@self", "x"], { home });
    expect(code).toBe(2);
    expect(asked).toEqual(["/v1/send", "/v1/version"]);
    expect(stderr).toMatch(advice);
    expect(stderr).toContain("what is that");
  });
});

/** A command that prints until it is stopped, and what it has printed. */
class FollowedOutput {
  readonly #child: ChildProcess;
  #stdout = "";

  constructor(args: readonly string[], home: string) {
    const env = { ...process.env, CLAUDEMESH_HOME: home };
    this.#child = spawn(claudemeshBin, args, { env, stdio: ["ignore", "pipe", "inherit"] });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#stdout += text;
    });
  }

  get stdout(): string {
    return this.#stdout;
  }

  async stop(): Promise<number | null> {
    const ended = new Promise<number | null>((resolve) => this.#child.once("close", resolve));
    this.#child.kill("SIGINT");
    return ended;
  }
}

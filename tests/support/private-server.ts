// Starts a PostgreSQL or Redis of our own from local binaries, on a free port with its data in a temporary folder.
// It ends with the process that started it, however that ends.
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { accessSync, chownSync, constants, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";

export interface PrivateServer {
  port: number;
  /** Ends it by this signal and starts it again on the same data and port, after so long; resolves when it answers. */
  restart(signal: "INT" | "KILL" | "QUIT" | "TERM", downMs: number): Promise<void>;
  stop(): Promise<void>;
}

export interface PostgresStart {
  /** Where its folder is made; the temporary folder where it is left out. */
  base?: string;
  /** As `-c` takes them, after those that make a test fast. */
  settings?: string[];
}

interface Account {
  uid: number;
  gid: number;
}

/** `answers` tells whether the server on a port is ready. Undefined: the binaries are not here, or do not run. */
export async function startPrivatePostgres(
  answers: (port: number) => Promise<boolean>,
  { base, settings = ["fsync=off"] }: PostgresStart = {},
): Promise<PrivateServer | undefined> {
  const initdb = findBinary("initdb");
  const postgres = findBinary("postgres");
  if (initdb === undefined || postgres === undefined) return undefined;
  // PostgreSQL refuses to run as root.
  const account = userInfo().uid === 0 ? findAccount("postgres") : undefined;
  if (userInfo().uid === 0 && account === undefined) return undefined;
  // A folder for temporary files that is ours alone would shut the other account out.
  const parent = base ?? (account === undefined ? tmpdir() : "/tmp");
  const folder = mkdtempSync(join(parent, "claudemesh-postgres-"));
  if (account !== undefined) chownSync(folder, account.uid, account.gid);
  const data = join(folder, "data");
  const initArguments = ["--pgdata", data, "--username", "postgres", "--auth", "trust", "--no-sync", "-E", "UTF8"];
  const initialised = spawnSync(initdb, initArguments, { ...account, cwd: folder, stdio: "ignore" });
  if (initialised.status !== 0) {
    rmSync(folder, { recursive: true, force: true });
    return undefined;
  }
  const port = await findFreePort();
  const set = settings.flatMap((setting) => ["-c", setting]);
  const command = [postgres, "-D", data, "-p", String(port), "-k", folder, "-h", "127.0.0.1", ...set];
  return startServer({ command, signal: "INT", folder, port, account, answers });
}

/** As for PostgreSQL; on a port of one's choice where it must come back to where it was. */
export async function startPrivateRedis(
  answers: (port: number) => Promise<boolean>,
  wantedPort?: number,
): Promise<PrivateServer | undefined> {
  const redis = findBinary("redis-server");
  if (redis === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "claudemesh-redis-"));
  const port = wantedPort ?? (await findFreePort());
  const command = [redis, "--port", String(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder];
  return startServer({ command, signal: "TERM", folder, port, account: undefined, answers });
}

interface ServerStart {
  command: string[];
  signal: "INT" | "TERM";
  folder: string;
  port: number;
  account: Account | undefined;
  answers: (port: number) => Promise<boolean>;
}

// The shell reads from our pipe until it closes, which the kernel does even when we are killed, and then ends the
// server and removes its folder. Each line is a restart: the signal, and for how many seconds the server stays away.
const keeper =
  'signal=$1; folder=$2; shift 2; "$@" </dev/null >/dev/null 2>&1 & server=$!; ' +
  'while read -r with pause; do kill -s "$with" "$server"; wait "$server"; sleep "$pause"; ' +
  '"$@" </dev/null >/dev/null 2>&1 & server=$!; echo started; done; ' +
  'kill -s "$signal" "$server"; wait "$server"; rm -rf "$folder"';

async function startServer(start: ServerStart): Promise<PrivateServer | undefined> {
  const { account, folder, port, answers, signal, command } = start;
  const child = spawn("/bin/sh", ["-c", keeper, "sh", signal, folder, ...command], {
    ...account,
    cwd: folder,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const stop = () => stopServer(child);
  const restart = async (endedBy: string, downMs: number) => {
    const started = once(child.stdout, "data");
    child.stdin.write(`${endedBy} ${downMs / 1_000}\n`);
    await started;
    if (!(await answersSoon(port, answers))) throw new Error(`the server did not come back on port ${port}`);
  };
  if (await answersSoon(port, answers)) return { port, restart, stop };
  await stop();
  return undefined;
}

async function answersSoon(port: number, answers: ServerStart["answers"]): Promise<boolean> {
  for (let tries = 0; tries < 200; tries += 1) {
    if (await answers(port)) return true;
    await sleep(50);
  }
  return false;
}

async function stopServer(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.stdin?.end();
  if (child.exitCode === null) await ended;
}

/** Whether anything takes connections there; enough for a Redis that keeps nothing. */
export function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

function findBinary(name: string): string | undefined {
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return [...folders, ...packagedPostgresFolders()].map((folder) => join(folder, name)).find(isExecutable);
}

/** Debian keeps the server's binaries off the PATH, in one folder per major version. */
function packagedPostgresFolders(): string[] {
  const root = "/usr/lib/postgresql";
  if (!isExecutable(root)) return [];
  const versions = readdirSync(root).sort((a, b) => Number(b) - Number(a));
  return versions.map((version) => join(root, version, "bin"));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function findAccount(name: string): Account | undefined {
  try {
    const ask = (flag: string) => Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: "pipe" }));
    return { uid: ask("-u"), gid: ask("-g") };
  } catch {
    return undefined;
  }
}

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

// Starts a PostgreSQL or Redis of our own from local binaries, on a free port with its data in a temporary folder.
// It ends with the process that started it, however that ends.
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { accessSync, chownSync, constants, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";

export interface PrivateServer {
  port: number;
  stop(): Promise<void>;
}

interface Account {
  uid: number;
  gid: number;
}

/** `answers` tells whether the server on a port is ready. Undefined: the binaries are not here, or do not run. */
export async function startPrivatePostgres(
  answers: (port: number) => Promise<boolean>,
): Promise<PrivateServer | undefined> {
  const initdb = findBinary("initdb");
  const postgres = findBinary("postgres");
  if (initdb === undefined || postgres === undefined) return undefined;
  // PostgreSQL refuses to run as root.
  const account = userInfo().uid === 0 ? findAccount("postgres") : undefined;
  if (userInfo().uid === 0 && account === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "claudemesh-postgres-"));
  if (account !== undefined) chownSync(folder, account.uid, account.gid);
  const data = join(folder, "data");
  const initArguments = ["--pgdata", data, "--username", "postgres", "--auth", "trust", "--no-sync", "-E", "UTF8"];
  const initialised = spawnSync(initdb, initArguments, { ...account, cwd: folder, stdio: "ignore" });
  if (initialised.status !== 0) {
    rmSync(folder, { recursive: true, force: true });
    return undefined;
  }
  const port = await findFreePort();
  const command = [postgres, "-D", data, "-p", String(port), "-k", folder, "-h", "127.0.0.1", "-c", "fsync=off"];
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
// server and removes its folder.
const keeper =
  'signal=$1; folder=$2; shift 2; "$@" </dev/null & server=$!; cat >/dev/null; ' +
  'kill -s "$signal" "$server"; wait "$server"; rm -rf "$folder"';

async function startServer(start: ServerStart): Promise<PrivateServer | undefined> {
  const child = spawn("/bin/sh", ["-c", keeper, "sh", start.signal, start.folder, ...start.command], {
    ...start.account,
    cwd: start.folder,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const stop = () => stopServer(child);
  for (let tries = 0; tries < 200; tries += 1) {
    if (await start.answers(start.port)) return { port: start.port, stop };
    await sleep(50);
  }
  await stop();
  return undefined;
}

async function stopServer(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.stdin?.end();
  if (child.exitCode === null) await ended;
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

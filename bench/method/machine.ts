// What a figure depends on besides the code: the machine, the file system under the files, and the versions of what
// runs. Read once, before anything is measured.
import { readFileSync, realpathSync, statfsSync } from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import { DatabaseSync } from "node:sqlite";

export type MachineFacts = {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly node: string;
  readonly sqlite: string;
  readonly fastify: string;
  readonly fileSystem: string;
  readonly loadAverageBefore: number;
};

export function readMachineFacts(folder: string): MachineFacts {
  return {
    cpu: os.cpus()[0]?.model.trim() ?? "unknown",
    cores: os.availableParallelism(),
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    kernel: `${os.type()} ${os.release()} ${os.arch()}`,
    node: process.version,
    sqlite: sqliteVersion(),
    fastify: fastifyVersion(),
    fileSystem: fileSystemOf(folder),
    loadAverageBefore: Math.round((os.loadavg()[0] ?? 0) * 100) / 100,
  };
}

/** Steal tells about other machines on the same host; this, about other programs on this one. */
export function isBusy({ loadAverageBefore }: Pick<MachineFacts, "loadAverageBefore">): boolean {
  return loadAverageBefore > 0.5;
}

/** A file system in memory flushes nothing, so no figure from there says anything about durability. */
export function keepsFilesInMemory(fileSystem: string): boolean {
  return /^(?:tmpfs|ramfs)\b/.test(fileSystem);
}

/** The type of the mount that holds the folder: the longest mount point above it, and of equal ones the last. */
export function findFileSystem(mounts: string, folder: string): string | undefined {
  let best: { readonly point: string; readonly type: string } | undefined;
  for (const line of mounts.split("\n")) {
    const [, rawPoint, type] = line.split(" ");
    if (rawPoint === undefined || type === undefined) continue;
    const point = rawPoint.replace(/\\([0-7]{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    const holds = folder === point || folder.startsWith(point.endsWith("/") ? point : `${point}/`);
    if (holds && point.length >= (best?.point.length ?? 0)) best = { point, type };
  }
  return best?.type;
}

export function fileSystemOf(folder: string): string {
  const type =
    process.platform === "linux"
      ? findFileSystem(readFileSync("/proc/self/mounts", "utf8"), realpathSync(folder))
      : undefined;
  return type ?? `type 0x${statfsSync(folder).type.toString(16)}`;
}

function sqliteVersion(): string {
  const db = new DatabaseSync(":memory:");
  try {
    return String(db.prepare("SELECT sqlite_version() AS version").get()?.version);
  } finally {
    db.close();
  }
}

function fastifyVersion(): string {
  const { version } = createRequire(import.meta.url)("fastify/package.json") as { version: string };
  return version;
}

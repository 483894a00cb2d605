// What can be said of a daemon's folder without changing anything in it, for people who ask what is wrong. Judging the
// findings is the asker's business.
import { existsSync, statSync } from "node:fs";
import type { MeshPaths } from "@claudemesh/client/home";
import { LocalFileError } from "@claudemesh/client/internal/private-files";
import { StorageError } from "@claudemesh/storage/errors";
import { acquireInstanceLock } from "@claudemesh/storage/instance-lock";
import { readDaemonConfig } from "../config.ts";
import { type ClonePolicy, compareHosts, type HostFacts, type HostVerdict } from "../core/host-fingerprint.ts";
import { readHostRecord } from "../files/host-fingerprint-file.ts";
import { readHostFacts } from "../files/this-host.ts";
import { StartRefused } from "../start-refused.ts";
import { findProblemsReadOnly } from "../stores/sqlite/look-for-damage.ts";
import { recoveringPath } from "../stores/sqlite/open-databases.ts";

export type FolderFindings = {
  /** Held: a daemon runs here, whether it answers or not. Unknown: the disk refuses what asking takes. */
  readonly lock: "held" | "free" | "unknown";
  readonly settings:
    | { readonly type: "readable"; readonly clonePolicy: ClonePolicy; readonly outboxMaxBytes: number }
    | { readonly type: "refused"; readonly problem: string };
  readonly host: HostVerdict | "not recorded" | "unreadable";
  readonly outbox:
    | { readonly type: "absent" | "recovery cut off" }
    /** A running daemon has looked when it started. */
    | { readonly type: "in use"; readonly bytes: number }
    | { readonly type: "sound"; readonly bytes: number }
    | { readonly type: "damaged"; readonly problem: string }
    /** The disk is full, or fails reads: that says nothing about the file. */
    | { readonly type: "unreadable"; readonly problem: string };
};

export async function examineFolder(
  paths: MeshPaths,
  env: Readonly<Record<string, string | undefined>>,
  readFacts: () => HostFacts = readHostFacts,
  acquire = acquireInstanceLock,
): Promise<FolderFindings> {
  const lock = await probeLock(paths, acquire);
  return { lock, settings: readSettings(paths, env), host: judgeHost(paths, readFacts), outbox: look(paths, lock) };
}

/** The lock is taken for an instant: a daemon that starts just then waits for it. */
async function probeLock(paths: MeshPaths, acquire: typeof acquireInstanceLock): Promise<FolderFindings["lock"]> {
  if (!existsSync(paths.lock)) return "free";
  try {
    (await acquire(paths.lock, { waitMs: 0 })).release();
    return "free";
  } catch (error) {
    if (error instanceof StorageError && error.kind === "locked") return "held";
    if (isOfTheDisk(error)) return "unknown";
    throw error;
  }
}

/** A file that cannot be opened is one: on a full disk there is no room for what reading it takes. */
function isOfTheDisk(error: unknown): error is StorageError {
  return error instanceof StorageError && ["io", "disk_full", "unavailable"].includes(error.kind);
}

function readSettings(paths: MeshPaths, env: Readonly<Record<string, string | undefined>>): FolderFindings["settings"] {
  try {
    const { clone, outbox } = readDaemonConfig({ path: paths.config, overrides: {}, env });
    return { type: "readable", clonePolicy: clone.policy, outboxMaxBytes: outbox.maxBytes };
  } catch (error) {
    if (error instanceof StartRefused) return { type: "refused", problem: error.message };
    throw error;
  }
}

function judgeHost(paths: MeshPaths, readFacts: () => HostFacts): FolderFindings["host"] {
  try {
    const stored = readHostRecord(paths.hostFingerprint);
    return stored === undefined ? "not recorded" : compareHosts(stored, readFacts());
  } catch (error) {
    if (error instanceof LocalFileError) return "unreadable";
    throw error;
  }
}

function look({ outboxDb }: MeshPaths, lock: FolderFindings["lock"]): FolderFindings["outbox"] {
  if (existsSync(recoveringPath(outboxDb))) return { type: "recovery cut off" };
  const bytes = statSync(outboxDb, { throwIfNoEntry: false })?.size;
  if (bytes === undefined) return { type: "absent" };
  if (lock === "held") return { type: "in use", bytes };
  try {
    const [problem] = findProblemsReadOnly(outboxDb, "quick");
    return problem === undefined ? { type: "sound", bytes } : { type: "damaged", problem };
  } catch (error) {
    if (isOfTheDisk(error)) return { type: "unreadable", problem: error.message };
    throw error;
  }
}

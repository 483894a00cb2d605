// `daemon backup`: outbox, inbox and settings of one mesh in a folder of their own, taken while the daemon runs or not.
// The folder appears under its name whole, or not at all. What putting it back means is in docs/operations.md.
import { randomBytes } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { ensurePrivateDir, type MeshPaths, readMeshConfig } from "@claudemesh/client/home";
import { createPrivateFile, fsyncDir, readPrivateFile } from "@claudemesh/client/internal/private-files";
import { readKeyFile } from "@claudemesh/client/keys";
import { StorageError } from "@claudemesh/storage/errors";
import { OperatorRefused } from "../operator-refused.ts";
import { type CopyOutcome, copyInbox, copyOutbox } from "../stores/sqlite/copy-databases.ts";

export type BackupOrder = {
  /** Absolute. Must not exist, or be empty. */
  readonly folder: string;
  readonly withKeys: boolean;
};

export type Backup = {
  readonly mesh: string;
  readonly folder: string;
  readonly taken_at: number;
  readonly member_pubkey: string;
  /** Rows and tombstones. */
  readonly outbox_rows: number;
  /** Null: there was none, or it was damaged; a daemon rebuilds it from the broker's history. */
  readonly inbox_rows: number | null;
  readonly with_keys: boolean;
};

const manifestVersion = 1;

export async function backUpDaemon(paths: MeshPaths, order: BackupOrder, nowMs = Date.now()): Promise<Backup> {
  const { folder, withKeys } = order;
  const mesh = readMeshConfig(paths);
  const keys = readKeyFile(paths.keypair);
  checkTarget(folder);
  const draft = `${folder}.${randomBytes(4).toString("hex")}.partial`;
  ensurePrivateDir(draft);
  try {
    const rows = await copyDatabases(paths, draft);
    createPrivateFile(join(draft, "config.toml"), readFileSync(paths.config, "utf8"));
    if (withKeys) createPrivateFile(join(draft, "keypair.json"), readPrivateFile(paths.keypair));
    const backup: Backup = {
      mesh: paths.mesh,
      folder,
      taken_at: nowMs,
      member_pubkey: keys.ed25519.public_key,
      ...rows,
      with_keys: withKeys,
    };
    const { folder: _, ...facts } = backup;
    const manifest = { version: manifestVersion, mesh_id: mesh.id, ...facts };
    createPrivateFile(join(draft, "backup.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
    renameSync(draft, folder);
    fsyncDir(dirname(folder));
    return backup;
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    throw isFull(error) ? new OperatorRefused("no_room", `There is no room for the backup at ${folder}.`) : error;
  }
}

/** What lies in a folder already could be taken for a part of the backup. */
function checkTarget(folder: string): void {
  const stats = lstatSync(folder, { throwIfNoEntry: false });
  if (stats === undefined || (stats.isDirectory() && readdirSync(folder).length === 0)) return;
  throw new OperatorRefused("target_in_the_way", `${folder} is there and not empty; name a new folder.`, { folder });
}

async function copyDatabases(paths: MeshPaths, draft: string): Promise<Pick<Backup, "outbox_rows" | "inbox_rows">> {
  const outbox = await copyOutbox(paths.outboxDb, join(draft, "outbox.db"));
  if (outbox.type === "absent") {
    const message = `There is no ${paths.outboxDb}; no daemon has run here yet.`;
    throw new OperatorRefused("nothing_to_back_up", message, { mesh: paths.mesh });
  }
  if (outbox.type === "damaged") throw damagedOutbox(paths, outbox);
  const inbox = await copyInbox(paths.inboxDb, join(draft, "inbox.db"));
  return { outbox_rows: outbox.rows, inbox_rows: inbox.type === "copied" ? inbox.rows : null };
}

function damagedOutbox(paths: MeshPaths, { problem }: Extract<CopyOutcome, { type: "damaged" }>): OperatorRefused {
  const message = `${paths.outboxDb} is damaged (${problem}), and so would the backup be. See what can be saved: claudemesh daemon down, then claudemesh daemon recover --mesh ${paths.mesh}`;
  return new OperatorRefused("outbox_corrupt", message, { mesh: paths.mesh });
}

function isFull(error: unknown): boolean {
  if (error instanceof StorageError) return error.kind === "disk_full";
  return error instanceof Error && (error as NodeJS.ErrnoException).code === "ENOSPC";
}

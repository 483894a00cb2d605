// A member for one run of a daemon: its keys are in memory alone, and its data is in a folder that is removed at the end.
// The rest of the mesh's folder is used as always, so that commands find the socket. What config.toml said before is put
// back.
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { joinMesh } from "@claudemesh/client/broker";
import {
  ensureMeshDir,
  ensurePrivateDir,
  type MeshConfig,
  type MeshPaths,
  writeMeshConfig,
} from "@claudemesh/client/home";
import { createPrivateFile, replacePrivateFile } from "@claudemesh/client/internal/private-files";
import { generateMemberKeys, type MemberKeys } from "@claudemesh/client/keys";
import type { Invite } from "@claudemesh/protocol/wire/invite";
import { acquireInstanceLock } from "@claudemesh/storage/instance-lock";
import type { OutboxStore, Timer } from "./ports.ts";
import type { ReleaseStack } from "./release-stack.ts";
import { StartRefused } from "./start-refused.ts";
import type { SystemClock } from "./system-clock.ts";

export type EphemeralOrder = {
  readonly invite: Invite;
  /** Its name in the mesh. */
  readonly name: string;
  readonly ttlMs: number;
};

const folderPrefix = "ephemeral-";
/** Inside the data folder: what config.toml said before, where it said something. */
const configBefore = "config.before";

/** Takes the lock first: an invite is good once, and must not be spent on a start that is refused. */
export async function openEphemeralMember(
  order: EphemeralOrder,
  paths: MeshPaths,
  resources: ReleaseStack,
): Promise<{ readonly mesh: MeshConfig; readonly keys: MemberKeys; readonly paths: MeshPaths }> {
  if (existsSync(paths.keypair)) throw keysInTheWay(paths);
  ensureMeshDir(paths);
  const lock = await acquireInstanceLock(paths.lock);
  resources.push(() => lock.release());
  removeLeftovers(paths);
  const keys = generateMemberKeys();
  const { invite, name } = order;
  const membership = await joinMesh({ invite, name, keys });
  const folder = join(paths.dir, `${folderPrefix}${randomBytes(4).toString("hex")}`);
  ensurePrivateDir(folder);
  resources.push(() => removeFolder(paths, folder));
  if (existsSync(paths.config)) createPrivateFile(join(folder, configBefore), readFileSync(paths.config, "utf8"));
  const mesh: MeshConfig = {
    id: invite.mesh_id,
    name: invite.mesh,
    broker: invite.broker,
    member_name: membership.name,
    broker_key: membership.broker_key,
  };
  writeMeshConfig(paths, mesh);
  const own = (file: string) => join(folder, file);
  const data = { outboxDb: own("outbox.db"), inboxDb: own("inbox.db"), schemaVersion: own("schema_version") };
  return { mesh, keys, paths: { ...paths, ...data } };
}

/** Removes what ephemeral daemons left behind that were killed. Called with the lock held. */
export function removeLeftovers(paths: MeshPaths): void {
  for (const name of readdirSync(paths.dir)) {
    if (name.startsWith(folderPrefix)) removeFolder(paths, join(paths.dir, name));
  }
}

/** A home that has joined in the meantime keeps its config.toml. The folder goes last, so that all of this can be repeated. */
function removeFolder(paths: MeshPaths, folder: string): void {
  if (!existsSync(paths.keypair)) {
    const before = join(folder, configBefore);
    if (existsSync(before)) replacePrivateFile(paths.config, readFileSync(before, "utf8"));
    else rmSync(paths.config, { force: true });
    rmSync(paths.localToken, { force: true });
  }
  rmSync(folder, { recursive: true, force: true });
}

function keysInTheWay(paths: MeshPaths): StartRefused {
  const message = `${paths.dir} holds keys of its own, and an ephemeral daemon has none on disk: start it with --persistent, or choose another home with CLAUDEMESH_HOME.`;
  return new StartRefused("keys_in_the_way", message);
}

/** Timers stand still while the machine sleeps, so the clock is read at least this often. */
const clockReadMs = 60_000;

/** Calls `onEnd` once the time to live is over. Time that the machine slept counts. */
export function endAfter(clock: SystemClock, ttlMs: number, onEnd: () => void): Timer {
  const endMs = clock.nowMs() + ttlMs;
  let timer: Timer | undefined;
  const check = () => {
    clock.noticeSleep();
    const leftMs = endMs - clock.nowMs();
    if (leftMs <= 0) onEnd();
    else timer = clock.setTimer(Math.min(leftMs, clockReadMs), check);
  };
  check();
  return { cancel: () => timer?.cancel() };
}

const drainGraceMs = 1_000;
const countEveryMs = 20;

/** Whether an ephemeral daemon sent everything that it accepted. What it did not send is lost with its keys. */
export type ShutdownReport = {
  /** Waits a moment for the drain, because no next start could send what is left. */
  readonly waitForDrain: () => Promise<void>;
  /** Counts the unsent messages for the last time. To be called before the outbox is closed. */
  readonly countUnsent: () => void;
  /** Makes the end a failure where messages were lost. */
  readonly amend: <End extends { readonly message: string }>(end: End) => End | LossyEnd;
};

type LossyEnd = { readonly reason: "messages_discarded"; readonly exitCode: 1; readonly message: string };

export function createShutdownReport(outbox: Pick<OutboxStore, "counts">): ShutdownReport {
  const unsentNow = () => {
    const { pending, inflight } = outbox.counts();
    return pending + inflight;
  };
  let unsent = 0;
  return {
    waitForDrain: async () => {
      for (let waitedMs = 0; waitedMs < drainGraceMs && unsentNow() > 0; waitedMs += countEveryMs) {
        await sleep(countEveryMs);
      }
    },
    countUnsent: () => {
      unsent = unsentNow();
    },
    amend: (end) => {
      if (unsent === 0) return end;
      const what = unsent === 1 ? "1 message that was accepted here" : `${unsent} messages that were accepted here`;
      const message = `${end.message}; ${what} had no answer from the broker, and the outbox is gone with the keys`;
      return { reason: "messages_discarded", exitCode: 1, message };
    },
  };
}

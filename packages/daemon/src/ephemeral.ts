// A member for a while: keys in memory alone, data in a folder that goes away at the end. The rest of the mesh's folder
// is used as always, so that commands find the socket; what stood in config.toml before is put back.
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
import { generateMemberKeys, type MemberKeys } from "@claudemesh/client/keys";
import { createPrivateFile, replacePrivateFile } from "@claudemesh/client/private-files";
import type { Invite } from "@claudemesh/protocol/wire/invite";
import { acquireInstanceLock } from "@claudemesh/storage/instance-lock";
import type { OutboxStore } from "./ports.ts";
import type { ReleaseStack } from "./release-stack.ts";
import { StartRefused } from "./start-refused.ts";

export type EphemeralOrder = {
  readonly invite: Invite;
  /** Its name in the mesh. */
  readonly name: string;
  readonly ttlMs: number;
};

const folderPrefix = "ephemeral-";
/** Inside the data folder: what config.toml said before, where it said something. */
const configBefore = "config.before";

/** The lock comes first: an invite is good once, and must not be spent on a start that is refused. */
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

/** What ephemeral daemons left that were killed. Called with the lock held. */
export function removeLeftovers(paths: MeshPaths): void {
  for (const name of readdirSync(paths.dir)) {
    if (name.startsWith(folderPrefix)) removeFolder(paths, join(paths.dir, name));
  }
}

/** A home that has joined in the meantime keeps its config.toml. The folder goes last: until then all can be repeated. */
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

const drainGraceMs = 1_000;
const lookMs = 20;

export type Farewell = {
  /** There is no next start that could send what is left, so the end waits a moment for it. */
  readonly waitForDrain: () => Promise<void>;
  /** Looks once more, before the outbox is closed. */
  readonly countUnsent: () => void;
  /** What could not be sent is gone, and that is no success. */
  readonly amend: <End extends { readonly message: string }>(end: End) => End | LossyEnd;
};

type LossyEnd = { readonly reason: "messages_discarded"; readonly exitCode: 1; readonly message: string };

export function createFarewell(outbox: Pick<OutboxStore, "counts">): Farewell {
  const unsentNow = () => {
    const { pending, inflight } = outbox.counts();
    return pending + inflight;
  };
  let unsent = 0;
  return {
    waitForDrain: async () => {
      for (let waitedMs = 0; waitedMs < drainGraceMs && unsentNow() > 0; waitedMs += lookMs) await sleep(lookMs);
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

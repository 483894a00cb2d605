// `daemon remint`: new keys for this home, and with them a new member of the mesh. The old keys stay until the
// broker has taken the new ones, and lie beside them afterwards; a run that was cut off is repeated with the same invite.
import { existsSync, linkSync, renameSync } from "node:fs";
import { dirname } from "node:path";
import { joinMesh, type Membership } from "@claudemesh/client/broker";
import { type MeshConfig, type MeshPaths, readMeshConfig, writeMeshConfig } from "@claudemesh/client/home";
import { fsyncDir } from "@claudemesh/client/internal/private-files";
import { generateMemberKeys, type MemberKeys, readKeyFile, writeKeyFile } from "@claudemesh/client/keys";
import { limits } from "@claudemesh/protocol/messages/limits";
import type { Invite } from "@claudemesh/protocol/wire/invite";
import { type HostFacts, recordHost } from "../core/host-fingerprint.ts";
import { writeHostRecord } from "../files/host-fingerprint-file.ts";
import { readHostFacts } from "../files/this-host.ts";
import { OperatorRefused, withStoppedDaemon } from "../operator-refused.ts";
import { openOutboxDatabase } from "../stores/sqlite/open-databases.ts";
import { countUnsettled } from "../stores/sqlite/outbox-reading.ts";
import { abortDeadOfOldKeys } from "../stores/sqlite/outbox-rows.ts";

export type RemintOrder = {
  readonly invite: Invite;
  /** Where absent: the one that the invite fixes, or else the home's own with the beginning of its new key. */
  readonly name?: string;
};

export type Remint = {
  readonly mesh: string;
  readonly name: string;
  readonly role: Membership["role"];
  readonly old_pubkey: string;
  readonly new_pubkey: string;
  readonly old_keys: string;
  /** Dead rows that can no longer be requeued: sealed with the old keys, or with a fate that only those could ask for. */
  readonly rows_retired: number;
};

export type RemintPorts = {
  readonly join: typeof joinMesh;
  readonly readHost: () => HostFacts;
  readonly nowMs: () => number;
  /** Called when a step is on disk; a test dies here. */
  readonly afterStep?: (step: RemintStep) => void;
};

export type RemintStep = "new_keys_written" | "joined" | "rows_retired" | "old_keys_kept" | "keys_replaced";

const systemPorts: RemintPorts = { join: joinMesh, readHost: readHostFacts, nowMs: Date.now };

export function remintKeys(paths: MeshPaths, order: RemintOrder, ports: RemintPorts = systemPorts): Promise<Remint> {
  return withStoppedDaemon(paths, async () => {
    const config = readMeshConfig(paths);
    const old = readKeyFile(paths.keypair);
    const { invite } = order;
    checkMesh(config, invite);
    await checkSettled(paths);
    const keys = ensureNextKeys(paths);
    ports.afterStep?.("new_keys_written");
    const name = order.name ?? invite.name ?? nextName(config.member_name, old, keys);
    const membership = await ports.join({ invite, name, keys });
    ports.afterStep?.("joined");
    const retired = await retireRowsOfOldKeys(paths, ports.nowMs());
    ports.afterStep?.("rows_retired");
    const oldKeys = replaceKeys(paths, ports);
    // Only now: before the keys are new, this would let a copy start with the old ones.
    writeHostRecord(paths.hostFingerprint, recordHost(ports.readHost()));
    const { name: member_name, broker_key } = membership;
    writeMeshConfig(paths, { ...config, broker: invite.broker, member_name, broker_key });
    return {
      mesh: paths.mesh,
      name: membership.name,
      role: membership.role,
      old_pubkey: old.ed25519.public_key,
      new_pubkey: keys.ed25519.public_key,
      old_keys: oldKeys,
      rows_retired: retired,
    };
  });
}

/** The old key keeps its name in the mesh, so that the new one needs another; a repeated run chooses the same. */
function nextName(name: string, old: MemberKeys, next: MemberKeys): string {
  const suffixOf = (keys: MemberKeys) => `-${keys.ed25519.public_key.slice(0, 8)}`;
  const base = name.endsWith(suffixOf(old)) ? name.slice(0, -suffixOf(old).length) : name;
  return base.slice(0, limits.nameCharacters - suffixOf(next).length) + suffixOf(next);
}

function checkMesh(config: MeshConfig, invite: Invite): void {
  if (config.id === invite.mesh_id) return;
  const message = `The invite is for another mesh (${invite.mesh}) than this one (${config.name}); ask one of its owners for an invite.`;
  throw new OperatorRefused("other_mesh", message, { mesh: config.name, invited_to: invite.mesh });
}

async function checkSettled(paths: MeshPaths): Promise<void> {
  if (!existsSync(paths.outboxDb)) return;
  const { db } = await openOutboxDatabase(paths.outboxDb);
  const unsettled = countUnsettled(db);
  db.close();
  const rows = unsettled.pending + unsettled.inflight + unsettled.dead_of_unknown_fate;
  if (rows === 0) return;
  const message = [
    `${rows} ${rows === 1 ? "row of the outbox is" : "rows of the outbox are"} not settled, and new keys could neither send them nor ask what became of them.`,
    `Let the daemon settle them first: claudemesh daemon accept-host --mesh ${paths.mesh}, then daemon up.`,
    `Where the member was removed from the mesh, nothing will ever send them. Let them go, then run this again: claudemesh daemon up --mesh ${paths.mesh}, claudemesh daemon outbox dismiss --all --why <text> --mesh ${paths.mesh}, claudemesh daemon down --mesh ${paths.mesh}.`,
    "Where this home is a copy, the original has the same rows and will settle them: move outbox.db away here.",
  ].join(" ");
  throw new OperatorRefused("outbox_unsettled", message, { mesh: paths.mesh, ...unsettled });
}

/** Keys that an earlier run has made may be a member already; others would need another invite. */
function ensureNextKeys(paths: MeshPaths): MemberKeys {
  const next = nextKeysPath(paths);
  if (!existsSync(next)) writeKeyFile(next, generateMemberKeys());
  return readKeyFile(next);
}

function nextKeysPath(paths: MeshPaths): string {
  return `${paths.keypair}.next`;
}

async function retireRowsOfOldKeys(paths: MeshPaths, nowMs: number): Promise<number> {
  if (!existsSync(paths.outboxDb)) return 0;
  const { db } = await openOutboxDatabase(paths.outboxDb);
  try {
    return db.transaction(() => abortDeadOfOldKeys(db, nowMs));
  } finally {
    db.close();
  }
}

/** There is a whole key file under the name at every moment. Returns where the old one lies. */
function replaceKeys(paths: MeshPaths, ports: RemintPorts): string {
  const kept = `${paths.keypair}.${new Date(ports.nowMs()).toISOString().replaceAll(/[:.]/g, "-")}`;
  linkSync(paths.keypair, kept);
  fsyncDir(dirname(paths.keypair));
  ports.afterStep?.("old_keys_kept");
  renameSync(nextKeysPath(paths), paths.keypair);
  fsyncDir(dirname(paths.keypair));
  ports.afterStep?.("keys_replaced");
  return kept;
}

// Who a daemon is and where it keeps its things: the member whose keys lie in the folder, or one that is made for this
// run alone. Either way the folder's lock is held from here on.
import { type MeshConfig, type MeshPaths, readMeshConfig } from "@claudemesh/client/home";
import { type MemberKeys, readKeyFile } from "@claudemesh/client/keys";
import { acquireInstanceLock } from "@claudemesh/storage/instance-lock";
import { type EphemeralOrder, openEphemeralMember, removeLeftovers } from "./ephemeral.ts";
import type { ReleaseStack } from "./release-stack.ts";

export type OpenMember = {
  readonly mesh: MeshConfig;
  readonly keys: MemberKeys;
  /** An ephemeral member's databases are elsewhere than those of one that stays. */
  readonly paths: MeshPaths;
};

export function openMember(
  ephemeral: EphemeralOrder | undefined,
  paths: MeshPaths,
  resources: ReleaseStack,
): Promise<OpenMember> {
  return ephemeral === undefined ? openKeptMember(paths, resources) : openEphemeralMember(ephemeral, paths, resources);
}

async function openKeptMember(paths: MeshPaths, resources: ReleaseStack): Promise<OpenMember> {
  const mesh = readMeshConfig(paths);
  const keys = readKeyFile(paths.keypair);
  const lock = await acquireInstanceLock(paths.lock);
  resources.push(() => lock.release());
  removeLeftovers(paths);
  return { mesh, keys, paths };
}

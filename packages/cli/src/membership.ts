// Making this home a member of a mesh: keys first and on disk, then the broker, then the config that makes the mesh
// known here. A crash anywhere leaves something that the same command finishes: the keys are the identity of the call.
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { createMesh, joinMesh, type Membership } from "@claudemesh/client/broker";
import { ensureMeshDir, type MeshPaths, meshPaths, readMeshConfig, writeMeshConfig } from "@claudemesh/client/home";
import { generateMemberKeys, type MemberKeys, readKeyFile, writeKeyFile } from "@claudemesh/client/keys";
import { MeshError } from "@claudemesh/protocol/errors";
import { isMemberName } from "@claudemesh/protocol/messages/names";
import type { Invite } from "@claudemesh/protocol/wire/invite";

export async function createMembership(options: {
  readonly home: string;
  readonly mesh: string;
  readonly broker: string;
  readonly adminToken: string;
  readonly name: string;
}): Promise<Membership> {
  const { home, mesh, broker, adminToken, name } = options;
  const paths = meshPaths(home, mesh);
  const keys = ensureKeys(paths);
  const membership = await createMesh({ broker, adminToken, name: mesh, ownerName: name, keys });
  writeMeshConfig(paths, { id: membership.mesh_id, name: mesh, broker, member_name: membership.name });
  return membership;
}

export async function joinMembership(home: string, invite: Invite, name: string): Promise<Membership> {
  const paths = meshPaths(home, invite.mesh);
  if (existsSync(paths.config)) {
    const { id } = readMeshConfig(paths);
    if (id !== invite.mesh_id) {
      const message = `This home has another mesh called ${invite.mesh}; choose another home with CLAUDEMESH_HOME.`;
      throw new MeshError("exists_with_other_content", message, { mesh: invite.mesh });
    }
  }
  const membership = await joinMesh({ invite, name, keys: ensureKeys(paths) });
  const { broker, mesh, mesh_id } = invite;
  writeMeshConfig(paths, { id: mesh_id, name: mesh, broker, member_name: membership.name });
  return membership;
}

function ensureKeys(paths: MeshPaths): MemberKeys {
  ensureMeshDir(paths);
  if (!existsSync(paths.keypair)) writeKeyFile(paths.keypair, generateMemberKeys());
  return readKeyFile(paths.keypair);
}

/** The user's own name where it can serve as a member's name. */
export function defaultMemberName(): string {
  const cleaned = userInfo()
    .username.replace(/[^A-Za-z0-9._-]/g, "-")
    .slice(0, 64);
  return isMemberName(cleaned) ? cleaned : "owner";
}

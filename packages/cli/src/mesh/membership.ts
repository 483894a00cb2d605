// Making this home a member of a mesh: keys first and on disk, then the broker, then the config that makes the mesh
// known here. A crash anywhere leaves something that the same command finishes: the keys are the identity of the call.
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { createMesh, joinMesh, type NewMembership } from "@claudemesh/client/broker";
import { ensureMeshDir, findMeshConfig, type MeshPaths, meshPaths, writeMeshConfig } from "@claudemesh/client/home";
import { brokerHttpUrl } from "@claudemesh/client/internal/broker-url";
import { generateMemberKeys, type MemberKeys, readKeyFile, writeKeyFile } from "@claudemesh/client/keys";
import { MeshError } from "@claudemesh/protocol/errors";
import { isMemberName } from "@claudemesh/protocol/messages/names";
import { isInClear } from "@claudemesh/protocol/wire/in-clear";
import type { Invite } from "@claudemesh/protocol/wire/invite";
import { WrongUsage } from "../exit-codes.ts";
import { keepCertificates, keepCertificateTexts } from "./trusted-certificates.ts";

/** Where the home has another mesh of this name, nothing is written: what is queued for that one would go to the new. */
export async function createMembership(options: {
  readonly home: string;
  readonly mesh: string;
  readonly broker: string;
  /** Others of the same store. */
  readonly brokers?: readonly string[];
  readonly adminToken: string;
  readonly name: string;
  /** Certificates that the home trusts from now on. */
  readonly ca?: string | undefined;
  /** The key that the broker must prove before the admin token is sent; absent: whatever it proves is kept. */
  readonly brokerKey?: string | undefined;
  /** The broker may be another machine that is reached without TLS. */
  readonly plainHttp?: boolean;
}): Promise<NewMembership> {
  const { home, mesh, broker, brokers = [], adminToken, name, ca } = options;
  if (options.plainHttp !== true) refuseClearText(broker);
  const paths = meshPaths(home, mesh);
  const config = findMeshConfig(paths);
  if (config !== undefined && brokerHttpUrl(config.broker, "") !== brokerHttpUrl(broker, "")) {
    const next = `choose another name, or another home with CLAUDEMESH_HOME. If it is the same broker under a new address, set broker in ${paths.config}`;
    throw otherMesh(mesh, `This home has a mesh called ${mesh} on the broker ${config.broker}; ${next}.`);
  }
  if (ca !== undefined) keepCertificates(home, ca);
  const brokerKey = config?.broker_key ?? options.brokerKey;
  const keys = ensureKeys(paths);
  const membership = await createMesh({ broker, adminToken, name: mesh, ownerName: name, keys, brokerKey });
  // Only the answer tells that the broker has lost the mesh that this home knows.
  if (config !== undefined && config.id !== membership.mesh_id) {
    const problem = `The broker at ${broker} has another mesh called ${mesh} than this home`;
    throw otherMesh(mesh, `${problem}: put the broker's store back, or choose another name for a new mesh.`);
  }
  const { mesh_id, name: member_name, broker_key } = membership;
  writeMeshConfig(paths, { id: mesh_id, name: mesh, broker, brokers, member_name, broker_key });
  return membership;
}

/** `name`: the one that the invite fixes, or else the user's own, where none is given. */
export async function joinMembership(
  home: string,
  invite: Invite,
  name?: string,
  { plainHttp = false } = {},
): Promise<NewMembership> {
  await trustInvite(home, invite, plainHttp);
  const paths = meshPaths(home, invite.mesh);
  const config = findMeshConfig(paths);
  if (config !== undefined && config.id !== invite.mesh_id) {
    const next = "choose another home with CLAUDEMESH_HOME";
    throw otherMesh(invite.mesh, `This home has another mesh called ${invite.mesh}; ${next}.`);
  }
  const wanted = name ?? invite.name ?? defaultMemberName();
  const membership = await joinMesh({ invite, name: wanted, keys: ensureKeys(paths) });
  const { broker, mesh, mesh_id } = invite;
  const { name: member_name, broker_key } = membership;
  // The list may hold the first address again.
  const brokers = (invite.brokers ?? []).filter((url) => brokerHttpUrl(url, "") !== brokerHttpUrl(broker, ""));
  writeMeshConfig(paths, { id: mesh_id, name: mesh, broker, brokers, member_name, broker_key });
  return membership;
}

/** Before anything is sent to an invite's broker: it has TLS, and the certificate that the invite names is trusted. */
export async function trustInvite(home: string, invite: Invite, plainHttp: boolean): Promise<void> {
  if (!plainHttp) refuseClearText(invite.broker);
  if (invite.cert_sha256 === undefined) return;
  const { fetchPinnedAuthority } = await import("../share/pinned-authority.ts");
  const authority = await fetchPinnedAuthority(invite.broker, invite.cert_sha256);
  if (authority !== undefined) keepCertificateTexts(home, [authority]);
}

/** Asked once, when this home begins to use the broker; a home that uses one already goes on. */
function refuseClearText(broker: string): void {
  if (!isInClear(broker)) return;
  const message = `${broker} is on another machine and has no TLS: the invite, tokens and topic messages could be read on the way. Use an https:// address (\`claudemesh up --share\` makes one), or give --plain-http in a network that you trust.`;
  throw new WrongUsage(message);
}

function otherMesh(mesh: string, message: string): MeshError {
  return new MeshError("exists_with_other_content", message, { mesh });
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

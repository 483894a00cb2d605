// Decides whether a hello opens its socket: the member must be live in the mesh and have signed what this connection is
// made of.

import { verifySignature } from "@claudemesh/members/credentials";
import type { Member, MembersStore, Mesh } from "@claudemesh/members/ports";
import type { HelloFrame } from "@claudemesh/protocol/wire/frames";
import { type HelloSession, helloBytes } from "@claudemesh/protocol/wire/signing";

/** Undefined: refused, for whatever reason; an outsider learns nothing more. The store is asked behind the signature. */
export async function authenticateHello(
  members: Pick<MembersStore, "findMesh" | "findMember">,
  session: HelloSession,
  hello: HelloFrame,
): Promise<{ readonly mesh: Mesh; readonly member: Member } | undefined> {
  const { mesh_id, pubkey, kind } = hello;
  if (mesh_id !== session.mesh_id) return undefined;
  if (!verifySignature(pubkey, helloBytes({ ...session, pubkey, kind }), hello.signature)) return undefined;
  const mesh = await members.findMesh(mesh_id);
  if (mesh === undefined || mesh.id !== mesh_id) return undefined;
  const member = await members.findMember(mesh.id, pubkey);
  return member === undefined || member.revoked ? undefined : { mesh, member };
}

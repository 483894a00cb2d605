// Decides whether a hello opens its socket: the member must be live in the mesh and have signed what this connection is
// made of.

import { verifySignature } from "@claudemesh/members/credentials";
import type { Member, MembersStore, Mesh } from "@claudemesh/members/ports";
import type { HelloFrame } from "@claudemesh/protocol/wire/frames";
import { type HelloSession, helloBytes } from "@claudemesh/protocol/wire/signing";

export type HelloVerdict =
  | { readonly type: "welcome"; readonly mesh: Mesh; readonly member: Member }
  /** It proved that it holds the key of a former member, and may know why it is refused. */
  | { readonly type: "membership_ended" }
  /** For whatever reason: an outsider learns nothing more. */
  | { readonly type: "refused" };

export async function authenticateHello(
  members: Pick<MembersStore, "findMesh" | "findMember">,
  session: HelloSession,
  hello: HelloFrame,
): Promise<HelloVerdict> {
  const { mesh_id, pubkey, kind } = hello;
  if (mesh_id !== session.mesh_id) return refused;
  if (!verifySignature(pubkey, helloBytes({ ...session, pubkey, kind }), hello.signature)) return refused;
  const mesh = await members.findMesh(mesh_id);
  if (mesh === undefined || mesh.id !== mesh_id) return refused;
  const member = await members.findMember(mesh.id, pubkey);
  if (member === undefined) return refused;
  return member.revoked ? { type: "membership_ended" } : { type: "welcome", mesh, member };
}

const refused: HelloVerdict = { type: "refused" };

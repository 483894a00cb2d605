// Creates a mesh with its first owner. The caller has shown the broker's admin token; the signature proves that the
// caller holds the owner's key.
import { MeshError } from "@claudemesh/protocol/errors";
import { isUuidV7 } from "@claudemesh/protocol/ids";
import { isName, isNewMemberName } from "@claudemesh/protocol/messages/names";
import type { CreateMeshRequest } from "@claudemesh/protocol/wire/invite";
import { createMeshBytes } from "@claudemesh/protocol/wire/signing";
import { verifySignature } from "../core/credentials.ts";
import type { Member, MembersStore, Mesh } from "../ports.ts";

export type CreateMeshPorts = {
  readonly store: Pick<MembersStore, "createMesh">;
  readonly nowMs: () => number;
  readonly nextId: () => string;
};

export async function createMesh(
  ports: CreateMeshPorts,
  request: CreateMeshRequest,
): Promise<{ readonly created: boolean; readonly mesh: Mesh; readonly owner: Member }> {
  const { name, owner, signature } = request;
  // A name that reads like an id would make `:mesh` in a path mean two things.
  if (!isName(name) || isUuidV7(name)) throw new MeshError("invalid_name", undefined, { field: "name" });
  if (!isNewMemberName(owner.name)) throw new MeshError("invalid_name", undefined, { field: "owner.name" });
  const signed = createMeshBytes({ name, owner_name: owner.name, owner_pubkey: owner.pubkey });
  if (!verifySignature(owner.pubkey, signed, signature)) {
    throw new MeshError("unauthorized", "The signature does not fit the owner's public key.");
  }
  const outcome = await ports.store.createMesh({ id: ports.nextId(), name }, owner, ports.nowMs());
  if (outcome.type === "different") {
    throw new MeshError("exists_with_other_content", `A mesh called ${name} exists with another owner.`, { name });
  }
  return { created: outcome.type === "created", mesh: outcome.mesh, owner: outcome.owner };
}

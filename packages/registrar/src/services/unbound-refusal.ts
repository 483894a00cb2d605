// Why a nonce authorises nothing, as a sentence with what to do about it. A caller that guesses learns nothing: an approval that
// does not exist and a nonce that is not its own read the same.
import type { MeshError } from "@claudemesh/protocol/errors";
import { registrarRefusal } from "@claudemesh/protocol/registrar/registrar-refusals";
import type { UnboundReason } from "../core/authority.ts";

const sentences: Readonly<Record<UnboundReason, string>> = {
  unknown: "No approval has this id and this nonce. Ask an owner for an approval.",
  other_purpose: "The approval is for another purpose: register or compensate. Ask an owner for one for this.",
  other_envelope: "The approval is for another operation, target, artifact, run or key than the request names.",
  owner_gone: "The member that approved this is no owner of the mesh any more. Ask an owner for a new approval.",
  not_yet: "The approval's window has not begun. Ask again after its not_before.",
  expired: "The approval's window has ended. Ask an owner for a new approval.",
  revoked: "The approval was revoked. Ask an owner for a new one.",
};

export function unboundRefusal(reason: UnboundReason): MeshError {
  return registrarRefusal("nonce_unbound", { reason }, sentences[reason]);
}

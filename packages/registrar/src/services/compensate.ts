// Making good a registration whose verification failed: recorded once, under an approval for exactly that. It creates no
// effect and frees nothing.

import { hashSecret } from "@claudemesh/members/credentials";
import type { Member } from "@claudemesh/members/ports";
import { requireOwner } from "@claudemesh/members/require-owner";
import { MeshError } from "@claudemesh/protocol/errors";
import { registrarRefusal } from "@claudemesh/protocol/registrar/registrar-refusals";
import { checkRegistrarText } from "@claudemesh/protocol/registrar/registrar-text";
import type { CompensateInput } from "@claudemesh/protocol/wire/registrar-operations";
import type { StoredRequest } from "../core/records.ts";
import type { RequestStore } from "../ports.ts";
import { requestBody } from "./bodies.ts";
import { unboundRefusal } from "./unbound-refusal.ts";

export type CompensatePorts = { readonly store: Pick<RequestStore, "compensate">; readonly nowMs: () => number };

export async function compensate(
  ports: CompensatePorts,
  owner: Member,
  input: CompensateInput,
): Promise<{ readonly duplicate: boolean; readonly stored: StoredRequest }> {
  requireOwner(owner, "compensate a registration");
  const { logical_request_key, approval_id, attempt_id, authorization_nonce } = input;
  checkRegistrarText({ logical_request_key, approval_id, attempt_id });
  const request = {
    meshId: owner.meshId,
    memberPubkey: owner.pubkey,
    logicalRequestKey: logical_request_key,
    attemptId: attempt_id,
    approvalId: approval_id,
    nonceHash: hashSecret(authorization_nonce),
  };
  const decision = await ports.store.compensate(request, ports.nowMs());
  switch (decision.type) {
    case "compensate":
      return { duplicate: false, stored: decision.stored };
    case "prior":
      return { duplicate: true, stored: decision.stored };
    case "unknown_key":
      throw new MeshError("not_found", "Nothing is registered under this key, so that there is nothing to compensate.");
    case "already_compensated":
      throw registrarRefusal(
        "replay_duplicate",
        { conflict: "already_compensated", ...requestBody(decision.stored) },
        "This registration was made good before, under another approval; it is compensated once.",
      );
    case "not_compensable":
      throw registrarRefusal("not_compensable", requestBody(decision.stored));
    case "unbound":
      throw unboundRefusal(decision.reason);
    case "nonce_consumed":
      throw registrarRefusal("replay_nonce_consumed");
    case "unauthorized":
      throw new MeshError("unauthorized");
  }
}

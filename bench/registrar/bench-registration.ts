// The registrar's services as the benchmark calls them: their ports, and an owner who approves.
import { randomBytes } from "node:crypto";
import { type MemberKeys, signerOf } from "@claudemesh/client/keys";
import type { Member } from "@claudemesh/members/ports";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { approvalBytes } from "@claudemesh/protocol/registrar/approval";
import type { RegisterInput } from "@claudemesh/protocol/wire/registrar-operations";
import type { RegistrarStore } from "@claudemesh/registrar/ports";
import { approve } from "@claudemesh/registrar/services/approve";
import type { RegisterPorts } from "@claudemesh/registrar/services/register";
import { RetryCounter } from "@claudemesh/registrar/services/retry-counter";
import { createSignatureCheck, type SignatureCheck } from "@claudemesh/registrar/services/signature-check";
import { benchEffect, type RegistrationIds, requestOf } from "./bench-request.ts";

/** The mesh that is registered in, by its owner. */
export type RegistrarMesh = { readonly id: string; readonly keys: MemberKeys };

export function ownerOf({ id, keys }: RegistrarMesh): Member {
  return { meshId: id, pubkey: keys.ed25519.public_key, name: "owner", role: "owner", joinedAt: 0, revoked: false };
}

/** What the services need beside a store, as a broker with the built-in verifier gives it. */
export function registrarPorts(store: RegistrarStore): RegisterPorts & { isSignedBy: SignatureCheck } {
  const fail = (error: unknown) => {
    throw error;
  };
  return {
    store,
    nowMs: Date.now,
    nextId: createUuidV7Generator({ nowMs: Date.now, randomBytes }),
    verifier: undefined,
    isSignedBy: createSignatureCheck(),
    retries: new RetryCounter({ store: store.attempts, onFailure: fail }),
    onVerified: (result) => {
      if (result !== "registered_closed") throw new Error(`a registration was found ${result}`);
    },
    onUnfinished: fail,
  };
}

/** An owner's approvals through the product's own service, signatures and all. */
export function approveAll(
  ports: Pick<RegisterPorts, "isSignedBy"> & { readonly store: RegistrarStore },
  mesh: RegistrarMesh,
  wanted: readonly RegistrationIds[],
): Promise<RegisterInput[]> {
  const sign = signerOf(mesh.keys);
  const owner = ownerOf(mesh);
  const notBefore = Date.now();
  const window = { not_before: notBefore, not_after: notBefore + 86_400_000 };
  return Promise.all(
    wanted.map(async (ids) => {
      const { approvalId: approval_id, runId: run_id } = ids;
      const terms = { approval_id, ...benchEffect, run_id, purpose: "register", ...window } as const;
      const signature = Buffer.from(sign(approvalBytes(owner.meshId, terms))).toString("hex");
      const admit = async () => undefined;
      const approving = { store: ports.store.approvals, nowMs: Date.now, isSignedBy: ports.isSignedBy, admit };
      const approved = await approve(approving, owner, { ...terms, signature });
      if (approved.type !== "approved") throw new Error(`the approval ${approval_id} was there`);
      return requestOf(ids, approved.authorizationNonce);
    }),
  );
}

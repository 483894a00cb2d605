// Checks a broker before a secret is sent to it over HTTP: it must sign a nonce with the key that the caller knows.
// That detects an impostor, but not a relay on an unencrypted connection: only TLS keeps the secret from a relay.
// Why: docs/decisions/0120.
import { randomBytes } from "node:crypto";
import { MeshError } from "@claudemesh/protocol/errors";
import { type ProveRequest, provePath } from "@claudemesh/protocol/wire/frames";
import { httpProofBytes } from "@claudemesh/protocol/wire/signing";
import { isSignedBy } from "../keys/verify-signature.ts";

export type ProveOrder = {
  readonly broker: string;
  readonly meshId?: string | undefined;
  /** Undefined: any key is accepted that the broker proves to hold. */
  readonly expected?: string | undefined;
  /** Posts, and returns the body of a 200. */
  readonly post: (broker: string, path: string, body: object, headers: Record<string, string>) => Promise<unknown>;
};

/** The broker's key; rejects with `not_our_broker` where it is another one, or where no key is proven. */
export async function proveBroker({ broker, meshId, expected, post }: ProveOrder): Promise<string> {
  const nonce = randomBytes(32).toString("hex");
  const request: ProveRequest = { nonce, ...(meshId !== undefined && { mesh_id: meshId }) };
  const body = await post(broker, provePath, request, {}).catch((error: unknown) => {
    if ((error as { status?: unknown }).status === 404) throw tooOld(broker);
    throw error;
  });
  const { broker_key, signature } = (body ?? {}) as Record<string, unknown>;
  if (typeof broker_key !== "string" || typeof signature !== "string") {
    throw notOurs(broker, "it proves no key", expected);
  }
  if (!isSignedBy(broker_key, httpProofBytes({ nonce, mesh_id: meshId ?? "", broker_key }), signature)) {
    throw notOurs(broker, "it does not hold the key that it names", expected, broker_key);
  }
  if (expected !== undefined && expected !== broker_key) {
    throw notOurs(broker, `it has the key ${broker_key}, and ${expected} was expected`, expected, broker_key);
  }
  return broker_key;
}

function tooOld(broker: string): MeshError {
  const message = `What answers at ${broker} cannot prove that it is the broker. If it is one of before 0.2, upgrade it; nothing was sent to it.`;
  return new MeshError("not_our_broker", message, { broker });
}

function notOurs(broker: string, what: string, expected?: string, seen?: string): MeshError {
  const message = `What answers at ${broker} is not the broker that is meant: ${what}. Nothing was sent to it; ask the owner who gave you the invite.`;
  return new MeshError("not_our_broker", message, { broker, expected_key: expected, seen_key: seen });
}

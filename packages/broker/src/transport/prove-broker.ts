// The first half of a hello: a client names its mesh and a nonce, and the broker proves over both that it holds its key.
// Any mesh is answered alike, so that no caller learns by this which ones there are.
// Why: docs/decisions/0120.
import { randomBytes } from "node:crypto";
import { createSchemaCompiler } from "@claudemesh/http/validation";
import { announceFeatures, closeCodes } from "@claudemesh/protocol/features";
import {
  type ConnectFrame,
  connectFrameSchema,
  type ProofFrame,
  protocolVersion,
} from "@claudemesh/protocol/wire/frames";
import type { HelloSession } from "@claudemesh/protocol/wire/signing";
import type { BrokerContext } from "../context.ts";

export type Proving =
  | { readonly type: "proven"; readonly session: HelloSession; readonly proof: ProofFrame }
  | { readonly type: "refused"; readonly code: number; readonly reason: string };

const refuseConnect = createSchemaCompiler()(connectFrameSchema);

/** For a client of the earlier handshake, which waits for a challenge and says nothing. Fits a close frame. */
export const upgradeClient = "upgrade this client: it waits for a challenge, and now the client speaks first (connect)";

export function proveBroker(
  { key, config }: Pick<BrokerContext, "key" | "config">,
  frame: Record<string, unknown>,
): Proving {
  const { type, protocol } = frame;
  if (type === "hello") return refused(closeCodes.feature_unavailable, upgradeClient);
  if (type !== "connect") return refused(closeCodes.protocol_error, "the first frame is a connect");
  if (Number.isSafeInteger(protocol) && protocol !== protocolVersion) {
    const who = Number(protocol) < protocolVersion ? "this client" : "the broker";
    return refused(closeCodes.feature_unavailable, `the broker speaks protocol ${protocolVersion}; upgrade ${who}`);
  }
  const refusal = refuseConnect(frame);
  if (refusal !== undefined) return refused(closeCodes.protocol_error, refusal.message);
  const { mesh_id, nonce: client_nonce } = frame as ConnectFrame;
  const { dedupe, inlineBytes, connectionPolicy } = config;
  const features = announceFeatures({ dedupe, inlineBytes, connectionPolicy });
  const nonce = randomBytes(32).toString("hex");
  const session = { client_nonce, broker_nonce: nonce, mesh_id, broker_key: key.publicKey };
  const signature = key.prove(session, features);
  const proof = {
    type: "proof",
    protocol: protocolVersion,
    nonce,
    broker_key: key.publicKey,
    features,
    signature,
  } as const;
  return { type: "proven", session, proof };
}

function refused(code: number, reason: string): Proving {
  return { type: "refused", code, reason };
}

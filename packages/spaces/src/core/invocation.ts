// Signed writes: whether a member put its name under this write, and what is kept of that. Pure.
import { hash } from "node:crypto";
import { verifySignature } from "@claudemesh/members/credentials";
import { canonicalJson } from "@claudemesh/protocol/canonical";
import { MeshError } from "@claudemesh/protocol/errors";
import type { JsonObject, JsonValue } from "@claudemesh/protocol/json";
import { fitsBytes } from "@claudemesh/protocol/spaces/entity";
import {
  envelopeOf,
  type InvocationEnvelope,
  invocationBytes,
  type WriteCommand,
} from "@claudemesh/protocol/spaces/invocation";
import type { InvocationRow, SpaceRef } from "../ports/rows.ts";

/** The write itself and where it belongs, to be compared with what was signed. */
export type SignedScope = {
  readonly cmd: WriteCommand;
  readonly space: SpaceRef;
  readonly memberPubkey: string;
  readonly sessionId: string;
  readonly localSeq: number;
  readonly payload: string;
};

export type VerifiedInvocation = {
  readonly invocation: InvocationRow;
  readonly authorization: InvocationRow;
};

const signaturePattern = /^[0-9a-f]{128}$/;

/** An envelope names the member and the write, and has no room for documents: it is kept beside a commit's 4 MiB, for ever. */
const envelopeBytesMax = 65_536;

function hashText(text: string): string {
  return hash("sha256", text, "hex");
}

/** The envelope that must have been signed for this write. */
export function envelopeFor(scope: SignedScope): InvocationEnvelope {
  const { space, memberPubkey, sessionId } = scope;
  const at = { publicKey: memberPubkey, meshId: space.meshId, space: space.spaceId, sessionId };
  return envelopeOf(at, scope, hashText(scope.payload));
}

/** After the replay check: another wrapper around the same write does not make it another one. */
export function verifySigned(
  offered: JsonObject | undefined,
  scope: SignedScope,
  isRequired: boolean,
): VerifiedInvocation | undefined {
  if (offered !== undefined) return verifyInvocation(offered, scope);
  if (!isRequired) return undefined;
  throw refuse("This space takes signed writes only; put an invocation into the write.");
}

/**
 * `{envelope, signature}`. The envelope may say more than it must (a time, a nonce), and all of it is signed and kept;
 * what it must say has to be true. Throws `forbidden` for anything else.
 */
function verifyInvocation(offered: JsonObject, scope: SignedScope): VerifiedInvocation {
  const { envelope, signature, ...others } = offered;
  if (!isObject(envelope) || typeof signature !== "string" || !signaturePattern.test(signature)) {
    throw refuse("An invocation is {envelope, signature}, the signature as 128 hex digits.");
  }
  if (Object.keys(others).length > 0) throw refuse("An invocation has no other fields than envelope and signature.");
  for (const [key, expected] of Object.entries(envelopeFor(scope))) {
    const found = Object.hasOwn(envelope, key) ? (envelope[key] as JsonValue) : null;
    if (canonicalJson(found) !== canonicalJson(expected as JsonValue)) {
      throw refuse(`The signed envelope's ${key} is not that of this write.`);
    }
  }
  if (!verifySignature(scope.memberPubkey, invocationBytes(envelope), signature)) {
    throw refuse("The signature is not the member's over this envelope.");
  }
  const invocation = canonicalJson(envelope);
  if (!fitsBytes(invocation, envelopeBytesMax)) {
    const details = { field: "invocation", limit_bytes: envelopeBytesMax };
    throw new MeshError("payload_too_large", "A signed envelope is at most 64 KiB.", details);
  }
  const authorization = canonicalJson({ invocation: hashText(invocation), iss: scope.memberPubkey, signature });
  return {
    invocation: { hash: hashText(invocation), content: invocation },
    authorization: { hash: hashText(authorization), content: authorization },
  };
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function refuse(message: string): MeshError {
  return new MeshError("forbidden", message, { field: "invocation" });
}

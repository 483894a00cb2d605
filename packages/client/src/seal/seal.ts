// Seals direct messages end to end: nonce ‖ crypto_box between two members' keys. The same request always seals to the
// same bytes, because its nonce follows from what is sealed. libsodium is loaded on first use, not on import.
// Why: docs/decisions/0125.
import { decodeHex } from "@claudemesh/protocol/encoding/hex";
import { encodeUtf8 } from "@claudemesh/protocol/encoding/utf8";
import { MeshError } from "@claudemesh/protocol/errors";
import {
  type AcceptRequest,
  readAcceptRequest,
  writeAcceptRequest,
} from "@claudemesh/protocol/messages/accept-request";
import type { Destination } from "@claudemesh/protocol/messages/addresses";
import { type Envelope, isSealedVersion } from "@claudemesh/protocol/messages/envelope";
import { fingerprint, fingerprintBytes, type Sha256 } from "@claudemesh/protocol/messages/fingerprint";
import {
  encodeSealedContent,
  readSealedContent,
  type SealedContent,
  sealOverheadBytes,
} from "@claudemesh/protocol/messages/sealed-content";
import type { SendContent } from "@claudemesh/protocol/messages/send-request";
import { SharedKeys } from "./shared-keys.ts";

/** The keys of a member: 32 bytes each, in lower-case hex. */
export type SealingKeys = {
  readonly ed25519: { readonly public_key: string; readonly secret_key: string };
  readonly x25519: { readonly secret_key: string };
};

export type SealRequest = {
  /** Without the sender, which is the member whose keys seal. */
  readonly content: Omit<SealedContent, "sender">;
  /** The fingerprint of this request, including its body: without the body a nonce could be used twice. */
  readonly requestFingerprint: Uint8Array;
};

/**
 * `peer` is the other member's ed25519 public key in hex: the sender's, or the recipient's for a box that we sealed
 * ourselves.
 */
export type SealedBox = { readonly peer: string; readonly sealed: Uint8Array };

export type Sealer = {
  /**
   * Makes the sealed body of an envelope of version "3". Throws `invalid_address` when no box can be made for the
   * recipient's key.
   */
  readonly seal: (request: SealRequest) => Uint8Array;
  /** The content of a box of version "3" between us and a peer; undefined when it is not such a box. */
  readonly open: (box: SealedBox) => SealedContent | undefined;
  /** The text in a box of version "2", from before version "3" existed. */
  readonly openVersion2: (box: SealedBox) => Uint8Array | undefined;
};

const nonceBytes = 24;
/** Separates the nonce key from every other key that is derived from the same secret. */
const nonceKeyLabel = "claudemesh-seal-nonce-3";
const nonceKeyBytes = 32;
const peersMax = 1_024;
const scratchBytes = 16_384;

export async function loadSealer(keys: SealingKeys): Promise<Sealer> {
  const { default: sodium } = await import("libsodium-wrappers");
  await sodium.ready;
  const sender = keys.ed25519.public_key;
  const seed = mustDecodeHex(keys.ed25519.secret_key);
  const nonceKey = sodium.crypto_generichash(nonceKeyBytes, encodeUtf8(nonceKeyLabel), seed);
  const sharedKeys = new SharedKeys(sodium, mustDecodeHex(keys.x25519.secret_key), peersMax);

  // libsodium copies its inputs, so most messages are laid out in the same memory.
  const scratch = new Uint8Array(scratchBytes);

  /** The content with its nonce. The fingerprint is put directly before it, so that both are hashed without a copy. */
  const prepare = ({ content, requestFingerprint }: SealRequest): { readonly bytes: Uint8Array; nonce: Uint8Array } => {
    if (requestFingerprint.length !== fingerprintBytes) {
      throw new RangeError(`a fingerprint has ${fingerprintBytes} bytes`);
    }
    let memory = scratch;
    const { bytes, headLength } = encodeSealedContent({ ...content, sender }, (length) => {
      if (fingerprintBytes + length > scratchBytes) memory = new Uint8Array(fingerprintBytes + length);
      return memory.subarray(fingerprintBytes, fingerprintBytes + length);
    });
    memory.set(requestFingerprint);
    // The head contains everything but the body, and the fingerprint covers the body: two contents never share a nonce.
    const nonceInput = memory.subarray(0, fingerprintBytes + headLength);
    return { bytes, nonce: sodium.crypto_generichash(nonceBytes, nonceInput, nonceKey) };
  };

  // A box between two members has one key in both directions, so a sender opens its own boxes in the same way.
  const openWith = (key: Uint8Array | undefined, sealed: Uint8Array): Uint8Array | undefined => {
    if (key === undefined || sealed.length < sealOverheadBytes) return undefined;
    try {
      return sodium.crypto_box_open_easy_afternm(sealed.subarray(nonceBytes), sealed.subarray(0, nonceBytes), key);
    } catch {
      // All lengths are valid, so only the authenticator can be wrong.
      return undefined;
    }
  };

  return {
    seal: (request) => {
      const sharedKey = sharedKeys.get(request.content.recipient);
      if (sharedKey === undefined) {
        throw new MeshError("invalid_address", "The recipient's key is not a public key that can be sealed for.", {
          field: "to",
        });
      }
      const { bytes, nonce } = prepare(request);
      return concat(nonce, sodium.crypto_box_easy_afternm(bytes, nonce, sharedKey.version3));
    },
    open: ({ peer, sealed }) => {
      const bytes = openWith(sharedKeys.get(peer)?.version3, sealed);
      return bytes === undefined ? undefined : readSealedContent(bytes);
    },
    openVersion2: ({ peer, sealed }) => openWith(sharedKeys.get(peer)?.version2, sealed),
  };
}

/** A message as its sender wrote it, to a resolved destination. */
export type OutgoingMessage = {
  readonly clientMessageId: string;
  readonly destination: Destination;
  readonly content: SendContent;
};

export type ComposedEnvelope = { readonly requestFingerprint: Uint8Array; readonly envelope: Envelope };

/**
 * The envelope that leaves the host: a direct message is sealed with its meta inside the box; everything else leaves as
 * it was written. Every way to send composes its envelope here.
 */
export function composeEnvelope(
  { sealer, sha256 }: { readonly sealer: Pick<Sealer, "seal">; readonly sha256: Sha256 },
  { clientMessageId, destination, content }: OutgoingMessage,
): ComposedEnvelope {
  const { priority, replyToId, canonicalMeta } = content;
  const plain: Envelope = { version: "1", destination, priority, replyToId, canonicalMeta, body: content.body };
  const requestFingerprint = fingerprint(sha256, plain);
  if (destination.kind !== "dm") return { requestFingerprint, envelope: plain };
  const recipient = destination.ref;
  const inside = { ...plain, recipient, clientMessageId, fromAgent: undefined, toAgent: undefined };
  const body = sealer.seal({ content: inside, requestFingerprint });
  return { requestFingerprint, envelope: { ...plain, version: "3", canonicalMeta: "", body } };
}

/**
 * A send in the form that the broker accepts: a direct message that is not sealed yet is sealed, everything else is
 * unchanged.
 */
export function sealRequest(
  ports: { readonly sealer: Pick<Sealer, "seal">; readonly sha256: Sha256 },
  request: AcceptRequest,
): AcceptRequest {
  const { clientMessageId, envelope: given } = readAcceptRequest(request);
  const { destination } = given;
  if (destination.kind !== "dm" || isSealedVersion(given.version)) return request;
  const { envelope } = composeEnvelope(ports, { clientMessageId, destination, content: given });
  return writeAcceptRequest(clientMessageId, envelope);
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const joined = new Uint8Array(a.length + b.length);
  joined.set(a);
  joined.set(b, a.length);
  return joined;
}

function mustDecodeHex(hex: string): Uint8Array {
  const bytes = decodeHex(hex);
  if (bytes === undefined) throw new RangeError("a key is not hex");
  return bytes;
}

// Sealing direct messages end to end: nonce ‖ crypto_box between two members' keys. The same request always seals to
// the same bytes, because its nonce follows from its id and fingerprint. libsodium is loaded on first use, not on import.
import { decodeHex } from "@claudemesh/protocol/encoding/hex";
import { encodeUtf8 } from "@claudemesh/protocol/encoding/utf8";
import { MeshError } from "@claudemesh/protocol/errors";
import { fingerprintBytes } from "@claudemesh/protocol/messages/fingerprint";
import type { MemberKeys } from "../keys/member-keys.ts";
import { SharedKeys } from "./shared-keys.ts";

export type SealRequest = {
  /** The recipient's ed25519 public key in hex. */
  readonly recipient: string;
  readonly clientMessageId: string;
  /** Of this very request: a fingerprint that did not cover the body would reuse a nonce. */
  readonly requestFingerprint: Uint8Array;
  readonly body: Uint8Array;
};

export type Sealer = {
  /** Throws `invalid_address` when no box can be made for the recipient's key. */
  readonly seal: (request: SealRequest) => Uint8Array;
  /** What a sender sealed for us; undefined when it is not that. */
  readonly open: (box: { readonly sender: string; readonly sealed: Uint8Array }) => Uint8Array | undefined;
  /** What we sealed for a recipient ourselves; undefined when it is not that. */
  readonly openOwn: (box: { readonly recipient: string; readonly sealed: Uint8Array }) => Uint8Array | undefined;
};

/** What a sealed body is larger than its plaintext: the nonce and the authenticator. */
export const sealOverheadBytes = 40;

const nonceBytes = 24;
/** Sets the nonce key apart from anything else that is ever derived from the same secret. */
const nonceKeyLabel = "claudemesh-seal-nonce-1";
const nonceKeyBytes = 32;
const peersMax = 1_024;
export async function loadSealer(keys: MemberKeys): Promise<Sealer> {
  const { default: sodium } = await import("libsodium-wrappers");
  await sodium.ready;
  const seed = mustDecodeHex(keys.ed25519.secret_key);
  const nonceKey = sodium.crypto_generichash(nonceKeyBytes, encodeUtf8(nonceKeyLabel), seed);
  const sharedKeys = new SharedKeys(sodium, mustDecodeHex(keys.x25519.secret_key), peersMax);

  const nonceOf = (clientMessageId: string, requestFingerprint: Uint8Array): Uint8Array => {
    // The fingerprint's length is fixed and it stands last, so no two requests give the same input.
    if (requestFingerprint.length !== fingerprintBytes) {
      throw new RangeError(`a fingerprint has ${fingerprintBytes} bytes`);
    }
    const input = concat(encodeUtf8(clientMessageId), requestFingerprint);
    return sodium.crypto_generichash(nonceBytes, input, nonceKey);
  };

  // A box between two members has one key in both directions, so a sender opens its own in the same way.
  const openFrom = (peer: string, sealed: Uint8Array): Uint8Array | undefined => {
    if (sealed.length < sealOverheadBytes) return undefined;
    const sharedKey = sharedKeys.get(peer);
    if (sharedKey === undefined) return undefined;
    try {
      const box = sealed.subarray(nonceBytes);
      return sodium.crypto_box_open_easy_afternm(box, sealed.subarray(0, nonceBytes), sharedKey);
    } catch {
      // All lengths are right, so the one thing left to be wrong is the authenticator.
      return undefined;
    }
  };

  return {
    seal: ({ recipient, clientMessageId, requestFingerprint, body }) => {
      const sharedKey = sharedKeys.get(recipient);
      if (sharedKey === undefined) {
        throw new MeshError("invalid_address", "The recipient's key is not a public key that can be sealed for.", {
          field: "to",
        });
      }
      const nonce = nonceOf(clientMessageId, requestFingerprint);
      return concat(nonce, sodium.crypto_box_easy_afternm(body, nonce, sharedKey));
    },
    open: ({ sender, sealed }) => openFrom(sender, sealed),
    openOwn: ({ recipient, sealed }) => openFrom(recipient, sealed),
  };
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

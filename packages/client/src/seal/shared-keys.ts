// The keys that this member shares with its peers, one scalar multiplication each, cached for the peers used last. A
// cached key needs no public-key arithmetic to seal or open.
import { decodeHex } from "@claudemesh/protocol/encoding/hex";
import { encodeUtf8 } from "@claudemesh/protocol/encoding/utf8";
import { isPublicKey } from "@claudemesh/protocol/messages/names";

/**
 * The part of libsodium that turns a peer's public key into a shared key. Both throw for a key that is not a valid
 * point.
 */
export type SharedKeyCrypto = {
  readonly crypto_sign_ed25519_pk_to_curve25519: (publicKey: Uint8Array) => Uint8Array;
  readonly crypto_box_beforenm: (publicKey: Uint8Array, secretKey: Uint8Array) => Uint8Array;
  readonly crypto_generichash: (bytes: number, message: Uint8Array, key: Uint8Array) => Uint8Array;
};

/** Each envelope version has its own key, so that no box can pass for one of another version. */
export type SharedKey = { readonly version2: Uint8Array; readonly version3: Uint8Array };

const version3Label = "claudemesh-seal-3";
const keyBytes = 32;

export class SharedKeys {
  readonly #crypto: SharedKeyCrypto;
  readonly #secretKey: Uint8Array;
  readonly #peersMax: number;
  /** In the order of use, the least recent first. */
  readonly #byPeer = new Map<string, SharedKey>();

  constructor(crypto: SharedKeyCrypto, secretKey: Uint8Array, peersMax: number) {
    this.#crypto = crypto;
    this.#secretKey = secretKey;
    this.#peersMax = peersMax;
  }

  /** `peer` is an ed25519 public key in hex; undefined when it is not a point with which keys can be shared. */
  get(peer: string): SharedKey | undefined {
    const cached = this.#byPeer.get(peer);
    const sharedKey = cached ?? this.#derive(peer);
    if (sharedKey === undefined) return undefined;
    this.#byPeer.delete(peer);
    this.#byPeer.set(peer, sharedKey);
    if (this.#byPeer.size > this.#peersMax) this.#forgetOldest();
    return sharedKey;
  }

  #derive(peer: string): SharedKey | undefined {
    const publicKey = isPublicKey(peer) ? decodeHex(peer) : undefined;
    if (publicKey === undefined) return undefined;
    try {
      const version2 = this.#crypto.crypto_box_beforenm(
        this.#crypto.crypto_sign_ed25519_pk_to_curve25519(publicKey),
        this.#secretKey,
      );
      return { version2, version3: this.#crypto.crypto_generichash(keyBytes, encodeUtf8(version3Label), version2) };
    } catch {
      // Both lengths are valid, so the key is off the curve or of small order.
      return undefined;
    }
  }

  #forgetOldest(): void {
    const [oldest] = this.#byPeer.keys();
    if (oldest === undefined) return;
    for (const key of Object.values(this.#byPeer.get(oldest) ?? {})) key.fill(0);
    this.#byPeer.delete(oldest);
  }
}

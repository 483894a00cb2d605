// A box as members made them before there was envelope version "3": tests need some, and nothing else makes them.
import { randomBytes } from "node:crypto";
import type { MemberKeys } from "@claudemesh/client/keys";
import sodium from "libsodium-wrappers";

export async function sealVersion2(from: MemberKeys, recipient: string, body: Uint8Array): Promise<Uint8Array> {
  await sodium.ready;
  const nonce = randomBytes(24);
  const publicKey = sodium.crypto_sign_ed25519_pk_to_curve25519(Buffer.from(recipient, "hex"));
  const box = sodium.crypto_box_easy(body, nonce, publicKey, Buffer.from(from.x25519.secret_key, "hex"));
  return Uint8Array.from([...nonce, ...box]);
}

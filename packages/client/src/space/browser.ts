// Spaces for browsers: a client over the browser's own WebSocket, with hellos signed by WebCrypto. Neither this file
// nor its imports need Node.
import { SpaceClient, type SpaceClientOptions } from "./space-client.ts";
import type { SigningOption, SpaceWire } from "./space-wire.ts";
import { signingWire } from "./wires/signing-wire.ts";
import { openSocketWire, type SocketIdentity, type SocketWireOptions } from "./wires/socket-wire.ts";

export type { BranchHandle, Off, PastBranch } from "./branch-handle.ts";
export type { Tx } from "./building/transaction.ts";
export type { Space } from "./space.ts";
export type { SpaceClient, SpaceClientOptions } from "./space-client.ts";
export type { SpaceError } from "./space-errors.ts";
export type { SpaceWire } from "./space-wire.ts";
export type { SocketIdentity } from "./wires/socket-wire.ts";

/** Starts connecting at once. Close the client to end it. */
export function connectSpaces(options: SocketWireOptions & SpaceClientOptions & SigningOption): SpaceClient {
  const wire = openSocketWire(options);
  const { loadSealing } = options.identity;
  return spacesOver(options.signWrites === true ? signingWire(wire, options.identity) : wire, {
    loadSealing,
    ...options,
  });
}

/** Spaces over a wire of the caller's own. */
export function spacesOver(wire: SpaceWire, options: SpaceClientOptions = {}): SpaceClient {
  return new SpaceClient(wire, options);
}

/** A CryptoKey, as WebCrypto names it. */
export type SigningKey = Parameters<typeof crypto.subtle.sign>[1];

/** The identity that connects, from an Ed25519 key in WebCrypto; the secret need not leave it. */
export function webCryptoIdentity(meshId: string, publicKey: string, privateKey: SigningKey): SocketIdentity {
  const sign = async (bytes: Uint8Array) =>
    new Uint8Array(await crypto.subtle.sign("Ed25519", privateKey, bytes as Uint8Array<ArrayBuffer>));
  return { meshId, publicKey, sign };
}

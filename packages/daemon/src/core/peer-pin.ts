// What a pinned name promises: sends to it go to the key that it stood for when it was first used, whatever the broker says
// later. Storing pins and asking for the list of members is done elsewhere.
// Why: docs/decisions/0126.
import { MeshError } from "@claudemesh/protocol/errors";

export type PeerPin = {
  readonly name: string;
  readonly pubkey: string;
  readonly pinnedAt: number;
  /** When the code of both keys was compared. Undefined where that was never done for this key. */
  readonly verifiedAt: number | undefined;
};

/** How far a key is known under the name that the broker gives it. */
export type PeerTrust = "unpinned" | "pinned" | "verified" | "changed";

export function trustOf(pin: PeerPin | undefined, pubkey: string): PeerTrust {
  if (pin === undefined) return "unpinned";
  if (pin.pubkey !== pubkey) return "changed";
  return pin.verifiedAt === undefined ? "pinned" : "verified";
}

/** What people compare at a glance: the beginning of a key. */
export function keyFingerprint(pubkey: string): string {
  return pubkey.slice(0, 16).replace(/(.{4})(?!$)/g, "$1 ");
}

/** `consequence`: what was not done therefore. */
export function keyChanged(pin: PeerPin, pubkey: string, consequence = "nothing was sent"): MeshError {
  const { name } = pin;
  const [was, is] = [keyFingerprint(pin.pubkey), keyFingerprint(pubkey)];
  return new MeshError(
    "peer_key_changed",
    `The key of ${name} was ${was} and is now ${is}; ${consequence}. Ask ${name} by another way whether that is right, then run: claudemesh peer trust ${name}`,
    { name, pinned_pubkey: pin.pubkey, pubkey, pinned_fingerprint: was, fingerprint: is },
  );
}

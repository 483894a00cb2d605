// The one rule for names of meshes, members, topics, queues, spaces and branches, and for public keys.

/** The rule as a schema says it. */
export const namePatternText = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";

const namePattern = new RegExp(namePatternText);
const publicKeyPattern = /^[0-9a-f]{64}$/;

export function isName(text: string): boolean {
  return namePattern.test(text);
}

/** `self` always means the sender, so no member may be called that. */
export function isMemberName(text: string): boolean {
  return isName(text) && text.toLowerCase() !== "self";
}

/**
 * What a new member may be called. Where a member is given by name or by public key, one that is called like another
 * one's key would be taken for that one.
 */
export function isNewMemberName(text: string): boolean {
  return isMemberName(text) && !isPublicKey(text.toLowerCase());
}

/** An ed25519 public key, 32 bytes in lower-case hex. */
export function isPublicKey(text: string): boolean {
  return publicKeyPattern.test(text);
}

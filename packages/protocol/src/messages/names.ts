// The one rule for names of meshes, members, topics, queues, spaces and branches, and for public keys.

/** The rule in the form of a schema. */
export const namePatternText = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";

const namePattern = new RegExp(namePatternText);
const publicKeyPattern = /^[0-9a-f]{64}$/;

export function isName(text: string): boolean {
  return namePattern.test(text);
}

/** `self` always means the sender, so no member may have that name. */
export function isMemberName(text: string): boolean {
  return isName(text) && text.toLowerCase() !== "self";
}

/**
 * The names that a new member may have. Where a member is given by name or by public key, a name that looks like
 * another member's key would be taken for that member.
 */
export function isNewMemberName(text: string): boolean {
  return isMemberName(text) && !isPublicKey(text.toLowerCase());
}

/** An ed25519 public key, 32 bytes in lower-case hex. */
export function isPublicKey(text: string): boolean {
  return publicKeyPattern.test(text);
}

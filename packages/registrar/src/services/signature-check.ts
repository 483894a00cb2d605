// Checks owners' signatures, and remembers which were good: the same key, bytes and signature are good again. What is
// stored is worked out anew for every registration, so a row that was changed since is another question.
import { hash } from "node:crypto";
import { verifySignatureAside } from "@claudemesh/members/credentials";

export type SignatureCheck = (pubkey: string, bytes: Uint8Array, signature: string) => Promise<boolean>;

/** Approvals that are remembered; the oldest makes room. */
const rememberedMax = 10_000;

/** `verify`: whatever works it out; by itself beside the event loop. */
export function createSignatureCheck(verify: SignatureCheck = verifySignatureAside): SignatureCheck {
  const good = new Set<string>();
  return async (pubkey, bytes, signature) => {
    // Key and signature have fixed lengths, so that the joining has one reading.
    const question = hash("sha256", Buffer.concat([Buffer.from(pubkey + signature, "latin1"), bytes]), "base64");
    if (good.has(question)) return true;
    if (!(await verify(pubkey, bytes, signature))) return false;
    if (good.size >= rememberedMax) {
      const [oldest] = good;
      if (oldest !== undefined) good.delete(oldest);
    }
    good.add(question);
    return true;
  };
}

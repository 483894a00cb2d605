// The token that guards the loopback API: made once, readable by its owner alone, compared without telling how much of
// a guess was right.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import {
  createPrivateFile,
  LocalFileError,
  readPrivateFile,
  replacePrivateFile,
} from "@claudemesh/client/private-files";

const tokenPattern = /^[0-9a-f]{64}$/;

export function ensureLocalToken(path: string): string {
  try {
    const token = readPrivateFile(path).trim();
    if (tokenPattern.test(token)) return token;
    const fresh = newToken();
    replacePrivateFile(path, `${fresh}\n`);
    return fresh;
  } catch (error) {
    if (!(error instanceof LocalFileError) || error.problem !== "missing") throw error;
    const fresh = newToken();
    createPrivateFile(path, `${fresh}\n`);
    return fresh;
  }
}

function newToken(): string {
  return randomBytes(32).toString("hex");
}

/** Over hashes, so that neither content nor length of the guess shows in the time. */
export function createTokenCheck(token: string): (guess: string) => boolean {
  const expected = sha256(token);
  return (guess) => timingSafeEqual(sha256(guess), expected);
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

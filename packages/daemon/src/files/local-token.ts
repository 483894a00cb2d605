// The token that guards the loopback API: readable by its owner alone, compared without telling how much of a guess was
// right, and replaced on demand. A replaced one is good for a while longer, so that a program that has just read it does not fail.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import {
  createPrivateFile,
  LocalFileError,
  readPrivateFile,
  replacePrivateFile,
} from "@claudemesh/client/internal/private-files";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Clock } from "../ports.ts";

export type TokenRotation = { readonly rotated_at: number; readonly old_token_valid_until: number };

export type LocalTokens = {
  readonly isValid: (guess: string) => boolean;
  /** Those that are valid now. None of them belongs into an address or a log. */
  readonly secrets: () => readonly string[];
  /** The new token is in its file, durably, when this returns. */
  readonly rotate: () => TokenRotation;
};

type Token = { readonly text: string; readonly hash: Buffer };
type OldToken = Token & { readonly validUntilMs: number };

const graceMs = 60_000;
const tokenPattern = /^[0-9a-f]{64}$/;

/** Reads the token of the file, or makes one. */
export function openLocalTokens(path: string, clock: Pick<Clock, "nowMs">): LocalTokens {
  let current = tokenOf(ensureLocalToken(path));
  let replaced: readonly OldToken[] = [];
  const valid = (): readonly Token[] => {
    const nowMs = clock.nowMs();
    replaced = replaced.filter(({ validUntilMs }) => nowMs < validUntilMs);
    return [current, ...replaced];
  };
  return {
    isValid: (guess) => {
      const hash = sha256(guess);
      return valid().some((token) => timingSafeEqual(hash, token.hash));
    },
    secrets: () => valid().map(({ text }) => text),
    rotate: () => {
      const fresh = newToken();
      try {
        replacePrivateFile(path, `${fresh}\n`);
      } catch (error) {
        throw new MeshError(
          "storage_unavailable",
          "The token's file could not be replaced; the old one stays.",
          {},
          error,
        );
      }
      const rotatedAt = clock.nowMs();
      const validUntilMs = rotatedAt + graceMs;
      replaced = [...replaced, { ...current, validUntilMs }];
      current = tokenOf(fresh);
      return { rotated_at: rotatedAt, old_token_valid_until: validUntilMs };
    },
  };
}

function ensureLocalToken(path: string): string {
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

function tokenOf(text: string): Token {
  return { text, hash: sha256(text) };
}

/** Hashes are compared, so that neither content nor length of a guess shows in the time. */
function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

// The rules of sessions: which member a token belongs to, when it is still good, and how it is made. Pure.
// Why: docs/decisions/0023.
import { createHmac, hash, timingSafeEqual } from "node:crypto";
import type { OpenRow, SessionRow } from "../ports/rows.ts";

/** A session that was not used for so long is over. */
export const sessionUnusedMs = 30 * 86_400_000;

export const saltBytes = 32;

/**
 * The token of one open. A retry of the open carries its openId, and gets the token again. The store keeps the salt, a hash
 * of the openId and a hash of the token, from which the token can't be made.
 */
export function sessionToken(open: Pick<OpenRow, "salt" | "sessionId" | "epoch">, openId: string): string {
  const text = ["claudemesh-session-token-1", open.sessionId, String(open.epoch), openId].join("\0");
  return `cms_${createHmac("sha256", open.salt).update(text).digest("base64url")}`;
}

export function hashOpenId(openId: string): Uint8Array {
  return hash("sha256", openId, "buffer");
}

export function hashToken(token: string): Uint8Array {
  return hash("sha256", token, "buffer");
}

export type SessionStanding = "current" | "revoked" | "unknown";

/** Another member's session is unknown to this one, whatever token it has. */
export function standingOf(
  session: SessionRow | undefined,
  memberPubkey: string,
  token: string,
  nowMs: number,
): SessionStanding {
  if (session === undefined || session.memberPubkey !== memberPubkey) return "unknown";
  if (isOver(session, nowMs)) return "revoked";
  return timingSafeEqual(session.tokenHash, hashToken(token)) ? "current" : "revoked";
}

/** Whether the token that an openId was answered with is still the session's current one. */
export function isCurrentOpen(open: OpenRow, session: SessionRow | undefined, nowMs: number): boolean {
  return session !== undefined && session.epoch === open.epoch && !isOver(session, nowMs);
}

function isOver(session: SessionRow, nowMs: number): boolean {
  return nowMs - session.usedAtMs >= sessionUnusedMs;
}

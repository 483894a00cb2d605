// Whether a caller still holds a session: what a connection asks before it shows a session anything, and how a session
// that only watches is kept.
import { MeshError } from "@claudemesh/protocol/errors";
import { standingOf } from "../core/session.ts";
import type { SessionRow, SpaceRef } from "../ports/rows.ts";
import type { SpacePorts } from "../ports.ts";
import { transact } from "./refusals.ts";

export type Holder = {
  readonly memberPubkey: string;
  readonly sessionId: string;
  readonly sessionToken: string;
};

/** A session that is watched is noted as used so often, and not more. */
const noteUseAfterMs = 86_400_000;

/** The session, if it is the holder's and the token is its last one; else the refusal. */
export function checkHolder(session: SessionRow | undefined, holder: Holder, nowMs: number): SessionRow {
  const standing = standingOf(session, holder.memberPubkey, holder.sessionToken, nowMs);
  if (session === undefined || standing === "unknown") throw new MeshError("session_not_found");
  if (standing === "revoked") throw new MeshError("session_revoked_error", undefined, { sessionId: session.sessionId });
  return session;
}

export async function holdSession(
  ports: Pick<SpacePorts, "store" | "nowMs">,
  space: SpaceRef,
  holder: Holder,
): Promise<SessionRow> {
  const nowMs = ports.nowMs();
  const session = await ports.store.read(space, (view) => view.findSession(holder.sessionId));
  const held = checkHolder(session, holder, nowMs);
  if (nowMs - held.usedAtMs < noteUseAfterMs) return held;
  return transact(ports.store, space, function* (tx) {
    yield* tx.lockSpace();
    const used = { ...checkHolder(yield* tx.lockSession(holder.sessionId), holder, nowMs), usedAtMs: nowMs };
    yield* tx.putSession(used);
    return used;
  });
}

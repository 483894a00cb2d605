// Opens a session, new or resumed. Every open gives it another epoch and token, and a holder of an older token has lost the
// session. The same openId again gets the same answer while that is still the last one, so that a lost answer costs nothing.
import { MeshError } from "@claudemesh/protocol/errors";
import { hashOpenId, hashToken, isCurrentOpen, saltBytes, sessionToken } from "../core/session.ts";
import type { Flow } from "../ports/flow.ts";
import type { OpenRow, SessionRow, SpaceRef } from "../ports/rows.ts";
import type { SpacePorts, SpaceTransaction } from "../ports.ts";
import { checkHolder } from "./hold-session.ts";
import { transact } from "./refusals.ts";

export type OpenRequest = {
  readonly openId: string;
  readonly sessionId?: string | undefined;
  readonly sessionToken?: string | undefined;
};

export type OpenedSession = {
  readonly sessionId: string;
  readonly sessionToken: string;
  /** The space's last seq. */
  readonly seq: number;
  readonly lastLocalSeq: number;
  readonly resumed: boolean;
  /** Counts the opens of this session: a connection keeps it, to know whether it still holds the session. */
  readonly epoch: number;
};

/** What a try of the transaction may use; made before it, so that each try opens the same. */
type Fresh = {
  readonly sessionId: string;
  readonly salt: Uint8Array;
  readonly nowMs: number;
  readonly full: MeshError | undefined;
};

/** `full`: why no session may be added now; one that is there is opened all the same. */
export async function openSession(
  ports: SpacePorts,
  space: SpaceRef,
  memberPubkey: string,
  request: OpenRequest,
  full?: MeshError,
): Promise<OpenedSession> {
  if ((request.sessionId === undefined) !== (request.sessionToken === undefined)) {
    const field = request.sessionId === undefined ? "sessionId" : "sessionToken";
    throw new MeshError("invalid_request", "A session is resumed with its id and its token.", { field });
  }
  const fresh: Fresh = { sessionId: ports.nextId(), salt: ports.randomBytes(saltBytes), nowMs: ports.nowMs(), full };
  const opened = await transact(ports.store, space, (tx) => open(tx, memberPubkey, request, fresh));
  if (opened.resumed) ports.onSessionTaken(space, opened.sessionId, opened.epoch);
  return opened;
}

function* open(tx: SpaceTransaction, memberPubkey: string, request: OpenRequest, fresh: Fresh): Flow<OpenedSession> {
  const space = yield* tx.lockSpace();
  if (!(yield* tx.isLiveMember(memberPubkey))) throw new MeshError("unauthorized");
  if (space === undefined) throw new MeshError("space_not_found");
  const openHash = hashOpenId(request.openId);
  const known = yield* tx.findOpen(memberPubkey, openHash);
  if (known !== undefined) return yield* openAgain(tx, known, request, space.lastSeq, fresh.nowMs);

  const session = yield* sessionToOpen(tx, memberPubkey, request, fresh);
  const { sessionId, epoch } = session;
  const resumed = request.sessionId !== undefined;
  const row: OpenRow = { memberPubkey, openHash, sessionId, epoch, salt: fresh.salt, resumed };
  const token = sessionToken(row, request.openId);
  yield* tx.putSession({ ...session, tokenHash: hashToken(token) });
  yield* tx.insertOpen(row);
  return answer(row, request.openId, session, space.lastSeq);
}

function* openAgain(
  tx: SpaceTransaction,
  known: OpenRow,
  request: OpenRequest,
  seq: number,
  nowMs: number,
): Flow<OpenedSession> {
  if (request.sessionId !== undefined && request.sessionId !== known.sessionId) {
    throw new MeshError("invalid_request", "This openId has opened another session; choose a new one.", {
      field: "openId",
    });
  }
  const session = yield* tx.lockSession(known.sessionId);
  if (session === undefined || !isCurrentOpen(known, session, nowMs)) {
    throw new MeshError("session_revoked_error", undefined, { sessionId: known.sessionId });
  }
  return answer(known, request.openId, session, seq);
}

function* sessionToOpen(
  tx: SpaceTransaction,
  memberPubkey: string,
  { sessionId, sessionToken: token = "" }: OpenRequest,
  fresh: Fresh,
): Flow<SessionRow> {
  if (sessionId === undefined) {
    const { nowMs, full } = fresh;
    if (full !== undefined) throw full;
    const tokenHash = new Uint8Array();
    return { sessionId: fresh.sessionId, memberPubkey, epoch: 1, tokenHash, lastLocalSeq: 0, usedAtMs: nowMs };
  }
  const holder = { memberPubkey, sessionId, sessionToken: token };
  const session = checkHolder(yield* tx.lockSession(sessionId), holder, fresh.nowMs);
  return { ...session, epoch: session.epoch + 1, usedAtMs: fresh.nowMs };
}

function answer(open: OpenRow, openId: string, session: SessionRow, seq: number): OpenedSession {
  const { sessionId, epoch, resumed } = open;
  const { lastLocalSeq } = session;
  return { sessionId, sessionToken: sessionToken(open, openId), seq, lastLocalSeq, resumed, epoch };
}

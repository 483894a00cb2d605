// The beginning of every write: the space's lock, then member, session and token, then whether this localSeq was decided
// before or passed over. Nothing is written here.
import { MeshError } from "@claudemesh/protocol/errors";
import { decideReplay, type Verdict } from "../../core/verdict.ts";
import type { Flow } from "../../ports/flow.ts";
import type { SessionRow, SpaceRow } from "../../ports/rows.ts";
import type { SpaceTransaction, SpaceView } from "../../ports.ts";
import { checkHolder, type Holder } from "../hold-session.ts";

type Looking = Pick<SpaceView, "findSpace" | "findSession" | "findVerdicts">;

/** The holder that writes, and under which key. */
export type Writer = Holder & {
  readonly localSeq: number;
  /** Of the canonical payload. */
  readonly fingerprint: Uint8Array;
  readonly nowMs: number;
};

export type Begun =
  | { readonly type: "first"; readonly space: SpaceRow; readonly session: SessionRow }
  | { readonly type: "answered"; readonly verdict: Verdict };

/** SPC-4: the token is looked at under the session's lock, so that after an open no older holder's write is accepted. */
export function* beginWrite(tx: SpaceTransaction, writer: Writer): Flow<Begun> {
  const asked = [tx.lockSpace(), tx.lockSession(writer.sessionId), tx.isLiveMember(writer.memberPubkey)] as const;
  const space = yield* asked[0];
  const session = yield* asked[1];
  const live = yield* asked[2];
  if (!live) throw new MeshError("unauthorized");
  if (space === undefined) throw new MeshError("space_not_found");
  const current = checkHolder(session, writer, writer.nowMs);
  // A verdict moves its session on in the same transaction: beyond the session's last localSeq there is none.
  const isNew = writer.localSeq > current.lastLocalSeq;
  const [stored] = isNew ? [] : yield* tx.findVerdicts(writer.sessionId, [writer.localSeq]);
  const claimed = decideReplay(stored, writer.fingerprint, writer.localSeq, current.lastLocalSeq);
  if (claimed.type === "refused") throw new MeshError(claimed.code, undefined, { localSeq: writer.localSeq });
  if (claimed.type === "answered") return claimed;
  return { type: "first", space, session: current };
}

/**
 * The same look without locks: what is decided already is answered before anything is spent on it. The verdict is asked
 * for after the session: if the session's last localSeq covers it, it is found, and is not taken for passed over.
 */
export function* lookUpWrite(view: Looking, writer: Writer): Flow<Verdict | undefined> {
  const asked = [view.findSpace(), view.findSession(writer.sessionId)] as const;
  const space = yield* asked[0];
  const session = yield* asked[1];
  if (space === undefined) throw new MeshError("space_not_found");
  const current = checkHolder(session, writer, writer.nowMs);
  const [stored] = yield* view.findVerdicts(writer.sessionId, [writer.localSeq]);
  const claimed = decideReplay(stored, writer.fingerprint, writer.localSeq, current.lastLocalSeq);
  if (claimed.type === "refused") throw new MeshError(claimed.code, undefined, { localSeq: writer.localSeq });
  return claimed.type === "answered" ? claimed.verdict : undefined;
}

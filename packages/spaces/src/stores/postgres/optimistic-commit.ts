// The optimistic commit: one round trip for commits of one session, which would otherwise cost two. Nothing is asked before
// the decision. The commits are decided on the spaces cache and on the rows as this store's last transaction left them, and a
// single statement writes them under the precondition that all of that is still so.
//
//   1. `LastSeenRows` offers a precondition: the space's row and the session's as they were last seen. It offers none for a
//      session that has not committed here, and none after a transaction that found another broker's commits in the space:
//      with several brokers at work, the precondition would most often be wrong.
//   2. `OptimisticCommit.decide` runs the bodies against a transaction that knows the precondition, the cache and the write
//      buffer, and nothing else. Whatever else a body asks for throws `CacheMiss`. So do sends, signatures, merges and branches
//      end the attempt, which one statement cannot write; and so does an answer that writes nothing, such as a refusal or a
//      replay: no statement would find out that it rested on rows that have changed.
//   3. `write` sends the statement, with BEGIN and COMMIT around it. It locks the space, compares its row, the session's row
//      and the membership with the precondition, and writes everything or nothing (SPC-18).
//
// The outcomes are: written, and the cache and the rows are those of the commits from here on; or not possible, at step 2 or at
// step 3, and a transaction that reads decides the same commits from the beginning. The cache and the last seen rows are
// therefore never a reason to accept a commit, only a reason to try. If the connection is lost in step 3, the caller does not
// learn whether the commits were made; a retry gets their verdicts.
// Why: docs/decisions/0070.
import { transactionWorkMax } from "@claudemesh/protocol/spaces/work";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { type Flow, ready } from "../../ports/flow.ts";
import type { SessionRow, SpaceRef, SpaceRow } from "../../ports/rows.ts";
import type { SpaceTransaction } from "../../ports.ts";
import { cachedTransaction, type PlainTransaction } from "../cached/cached-transaction.ts";
import type { SpaceCacheOverlay } from "../cached/space-cache.ts";
import { type WriteBatch, WriteBuffer } from "../write-buffer.ts";
import { entitiesPerLook } from "./space-view.ts";
import { fitsOneStatement, type Precondition, writeIfUnchanged } from "./write-if-unchanged.ts";

/** Something was asked that is neither cached nor part of the precondition. Never leaves this file. */
class CacheMiss extends Error {}

type Body = (tx: SpaceTransaction) => Flow<unknown>;

/** The space as a transaction found it and as it left it, and the sessions that it looked at. */
export type RowsAfterCommit = {
  readonly foundSeq: number;
  readonly space: SpaceRow;
  readonly sessions: readonly SessionRow[];
};

export class OptimisticCommit {
  readonly values: readonly unknown[];
  readonly after: RowsAfterCommit;
  readonly #batch: WriteBatch;
  readonly #precondition: Precondition;

  private constructor(values: readonly unknown[], buffer: WriteBuffer, precondition: Precondition) {
    this.values = values;
    this.#precondition = precondition;
    const { space, session } = precondition;
    this.after = { foundSeq: space.lastSeq, space: buffer.space(space), sessions: [buffer.session(session)] };
    this.#batch = buffer.take();
  }

  static decide(
    bodies: readonly Body[],
    precondition: Precondition,
    cache: SpaceCacheOverlay,
  ): OptimisticCommit | "not_possible" {
    const buffer = new WriteBuffer();
    let work = 0;
    const plain = transactionOn(precondition, buffer, (units) => {
      work += units;
    });
    const tx = cachedTransaction(plain, cache);
    const values: unknown[] = [];
    for (const body of bodies) {
      // The event loop does nothing else until all of them are decided.
      if (work >= transactionWorkMax) return "not_possible";
      const before = buffer.count;
      const outcome = runWithoutReading(body(tx));
      if (outcome === "not_possible" || buffer.count === before) return "not_possible";
      values.push(outcome.value);
    }
    const commit = new OptimisticCommit(values, buffer, precondition);
    return fitsOneStatement(commit.#batch) ? commit : "not_possible";
  }

  /** False: nothing was written, because something is no longer what was decided on. */
  write(tx: PostgresTransaction, space: SpaceRef): Promise<boolean> {
    return writeIfUnchanged(tx, space, this.#batch, this.#precondition);
  }
}

function runWithoutReading(flow: Flow<unknown>): { readonly value: unknown } | "not_possible" {
  try {
    const step = flow.next();
    return step.done === true ? { value: step.value } : "not_possible";
  } catch (error) {
    if (error instanceof CacheMiss) return "not_possible";
    throw error;
  }
}

function transactionOn(
  { space, session }: Precondition,
  buffer: WriteBuffer,
  worked: SpaceTransaction["worked"],
): PlainTransaction {
  const miss = (): never => {
    throw new CacheMiss();
  };
  return {
    worked,
    entitiesPerLook,
    lockSpace: () => ready(() => buffer.space(space)),
    lockSession: (id) => ready(() => (id === session.sessionId ? buffer.session(session) : miss())),
    // The statement looks whether this is so.
    isLiveMember: (pubkey) => ready(() => pubkey === session.memberPubkey || miss()),
    findVerdicts: (id, localSeqs) => buffer.findVerdicts(id, localSeqs, miss),
    writeAccepted: (writes) => ready(() => buffer.accept(writes)),
    writeRejected: (verdict) => ready(() => buffer.decide(verdict)),
    findSpace: miss,
    findSession: miss,
    findBranches: miss,
    listBranches: miss,
    readTails: miss,
    readWrites: miss,
    readLayers: miss,
    listEntityIds: miss,
    readLog: miss,
    readMerges: miss,
    findInvocation: miss,
    findOpen: miss,
    insertOpen: miss,
    putSession: miss,
    mark: miss,
    undoToMark: miss,
    acceptSends: miss,
  };
}

const sessionsMax = 256;

/** The rows of a space that change without a seq, as this store's last transaction left them. */
export class LastSeenRows {
  /** Undefined after a transaction that found another broker's commits. */
  #space: SpaceRow | undefined;
  /** The one that wrote last stands last. */
  readonly #sessions = new Map<string, SessionRow>();

  /** As far as is known here, no other broker has committed of late. */
  get isQuiet(): boolean {
    return this.#space !== undefined;
  }

  precondition(sessionId: string): Precondition | undefined {
    const session = this.#sessions.get(sessionId);
    return this.#space && session && { space: this.#space, session };
  }

  /** After COMMIT. `expectedSeq` is the one at which the space was left before; undefined where that is not known. */
  keep({ foundSeq, space, sessions }: RowsAfterCommit, expectedSeq: number | undefined): void {
    this.#space = foundSeq === (expectedSeq ?? foundSeq) ? space : undefined;
    for (const session of sessions) {
      this.#sessions.delete(session.sessionId);
      this.#sessions.set(session.sessionId, session);
    }
    for (const oldest of this.#sessions.keys()) {
      if (this.#sessions.size <= sessionsMax) break;
      this.#sessions.delete(oldest);
    }
  }
}

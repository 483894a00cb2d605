// Many commits to one space that follow each other in one SQLite transaction: space, members and sessions are read once, and
// what is decided is buffered and written in one go. A commit sees what those before it decided: sessions and verdicts from
// here, and for everything else the database is asked after the buffer was written there.
// Why: docs/tuning-log.md#sqlite-commits-are-written-together.
import assert from "node:assert/strict";
import { isLiveMember } from "@claudemesh/members/sqlite";
import type { SendsOutcome, SendToAccept } from "@claudemesh/protocol/messages/commit-sends";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { ready } from "../../ports/flow.ts";
import type { SessionRow, SpaceRef, SpaceRow } from "../../ports/rows.ts";
import type { PlainTransaction } from "../cached/cached-transaction.ts";
import { WriteBuffer } from "../write-buffer.ts";
import { insertOpen, selectOpen, selectSession, selectSpace, upsertSession } from "./session-rows.ts";
import { viewOf } from "./space-view.ts";
import { writeBatch } from "./write-batch.ts";

export type AcceptSends = (tx: Sqlite, meshId: string, sends: readonly SendToAccept[]) => SendsOutcome;

export class SharedTransaction {
  readonly #tx: Sqlite;
  readonly #space: SpaceRef;
  #spaceRow: SpaceRow | undefined;
  readonly #sessions = new Map<string, SessionRow>();
  readonly #members = new Map<string, boolean>();
  readonly #buffer = new WriteBuffer();
  readonly body: PlainTransaction;
  #work = 0;

  constructor(tx: Sqlite, space: SpaceRef, acceptSends: AcceptSends) {
    this.#tx = tx;
    this.#space = space;
    this.body = this.#createBody(acceptSends);
  }

  /** What its bodies have cost so far. */
  get work(): number {
    return this.#work;
  }

  /** After the last body, and before another job uses the transaction. */
  finish(): void {
    this.#write();
  }

  #createBody(acceptSends: AcceptSends): PlainTransaction {
    const space = this.#space;
    const view = viewOf(() => this.#afterWrites(), space);
    return {
      ...view,
      worked: (units) => {
        this.#work += units;
      },
      lockSpace: () => ready(() => this.#findSpace()),
      lockSession: (sessionId) => ready(() => this.#findSession(sessionId)),
      isLiveMember: (pubkey) => ready(() => this.#isLiveMember(pubkey)),
      findVerdicts: (sessionId, localSeqs) => this.#buffer.findVerdicts(sessionId, localSeqs, view.findVerdicts),
      findOpen: (memberPubkey, openHash) => ready(() => selectOpen(this.#afterWrites(), space, memberPubkey, openHash)),
      insertOpen: (open) => ready(() => insertOpen(this.#afterWrites(), space, open)),
      putSession: (session) => ready(() => this.#putSession(session)),
      writeAccepted: (writes) => ready(() => this.#buffer.accept(writes)),
      writeRejected: (verdict) => ready(() => this.#buffer.decide(verdict)),
      mark: () => ready(() => this.#afterWrites().exec("SAVEPOINT before_sends")),
      undoToMark: () => ready(() => this.#undoToMark()),
      acceptSends: (sends) => ready(() => acceptSends(this.#afterWrites(), space.meshId, sends)),
    };
  }

  #findSpace(): SpaceRow | undefined {
    this.#spaceRow ??= selectSpace(this.#tx, this.#space);
    return this.#spaceRow && this.#buffer.space(this.#spaceRow);
  }

  #findSession(sessionId: string): SessionRow | undefined {
    const row = this.#sessions.get(sessionId) ?? selectSession(this.#tx, this.#space, sessionId);
    if (row === undefined) return undefined;
    this.#sessions.set(sessionId, row);
    return this.#buffer.session(row);
  }

  #isLiveMember(pubkey: string): boolean {
    const live = this.#members.get(pubkey) ?? isLiveMember(this.#tx, this.#space.meshId, pubkey);
    this.#members.set(pubkey, live);
    return live;
  }

  #putSession(session: SessionRow): void {
    upsertSession(this.#afterWrites(), this.#space, session);
    this.#sessions.delete(session.sessionId);
    this.#buffer.forgetSession(session.sessionId);
  }

  #undoToMark(): void {
    assert(this.#buffer.count === 0, "sends are accepted after everything is written");
    this.#tx.exec("ROLLBACK TO before_sends");
    // What was read or decided before the mark is asked of the database again.
    this.#spaceRow = undefined;
    this.#sessions.clear();
    this.#buffer.forgetAll();
  }

  #afterWrites(): Sqlite {
    this.#write();
    return this.#tx;
  }

  #write(): void {
    if (this.#buffer.count > 0) writeBatch(this.#tx, this.#space, this.#buffer.take());
  }
}

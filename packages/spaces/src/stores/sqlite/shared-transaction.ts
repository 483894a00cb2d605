// Many commits to one space that follow each other in one SQLite transaction: space, members and sessions are read once, and
// what is decided is held back and written in one go. A commit sees what those before it decided: sessions and verdicts from
// here, and whatever else is asked of the database after what is held back was written there.
// Why: docs/tuning-log.md#sqlite-commits-are-written-together.

import assert from "node:assert/strict";
import { isLiveMember } from "@claudemesh/members/sqlite";
import type { SendsOutcome, SendToAccept } from "@claudemesh/protocol/messages/commit-sends";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { KnownDraft } from "../../core/known-space.ts";
import { ready } from "../../ports/flow.ts";
import type { SessionRow, SpaceRef, SpaceRow } from "../../ports/rows.ts";
import type { SpaceTransaction } from "../../ports.ts";
import { HeldWrites } from "../held-writes.ts";
import { writeDecided } from "./decided-rows.ts";
import { insertOpen, selectOpen, selectSession, selectSpace, upsertSession } from "./session-rows.ts";
import { viewOf } from "./space-view.ts";

export type AcceptSends = (tx: Sqlite, meshId: string, sends: readonly SendToAccept[]) => SendsOutcome;

export class SharedTransaction {
  readonly #tx: Sqlite;
  readonly #space: SpaceRef;
  #spaceRow: SpaceRow | undefined;
  readonly #sessions = new Map<string, SessionRow>();
  readonly #members = new Map<string, boolean>();
  readonly #held = new HeldWrites();
  readonly known: KnownDraft;
  readonly body: SpaceTransaction;
  #work = 0;

  constructor(tx: Sqlite, space: SpaceRef, known: KnownDraft, acceptSends: AcceptSends) {
    this.#tx = tx;
    this.#space = space;
    this.known = known;
    this.body = this.#createBody(acceptSends);
  }

  /** What its bodies have cost so far. */
  get work(): number {
    return this.#work;
  }

  /** After the last body, and before anybody else uses the transaction. */
  finish(): void {
    this.#write();
  }

  #createBody(acceptSends: AcceptSends): SpaceTransaction {
    const space = this.#space;
    const view = viewOf(() => this.#afterWrites(), space);
    return {
      ...view,
      known: this.known,
      worked: (units) => {
        this.#work += units;
      },
      lockSpace: () => ready(() => this.#findSpace()),
      lockSession: (sessionId) => ready(() => this.#findSession(sessionId)),
      isLiveMember: (pubkey) => ready(() => this.#isLiveMember(pubkey)),
      findVerdicts: (sessionId, localSeqs) => {
        const held = this.#held.verdictsOf(sessionId, localSeqs);
        return held === undefined ? view.findVerdicts(sessionId, localSeqs) : ready(() => held);
      },
      findOpen: (memberPubkey, openHash) => ready(() => selectOpen(this.#afterWrites(), space, memberPubkey, openHash)),
      insertOpen: (open) => ready(() => insertOpen(this.#afterWrites(), space, open)),
      putSession: (session) => ready(() => this.#putSession(session)),
      writeAccepted: (writes) => ready(() => this.#held.accept(writes)),
      writeRejected: (verdict) => ready(() => this.#held.decide(verdict)),
      mark: () => ready(() => this.#afterWrites().exec("SAVEPOINT before_sends")),
      undoToMark: () => ready(() => this.#undoToMark()),
      acceptSends: (sends) => ready(() => acceptSends(this.#afterWrites(), space.meshId, sends)),
    };
  }

  #findSpace(): SpaceRow | undefined {
    this.#spaceRow ??= selectSpace(this.#tx, this.#space);
    return this.#spaceRow && this.#held.space(this.#spaceRow);
  }

  #findSession(sessionId: string): SessionRow | undefined {
    const row = this.#sessions.get(sessionId) ?? selectSession(this.#tx, this.#space, sessionId);
    if (row === undefined) return undefined;
    this.#sessions.set(sessionId, row);
    return this.#held.session(row);
  }

  #isLiveMember(pubkey: string): boolean {
    const live = this.#members.get(pubkey) ?? isLiveMember(this.#tx, this.#space.meshId, pubkey);
    this.#members.set(pubkey, live);
    return live;
  }

  #putSession(session: SessionRow): void {
    upsertSession(this.#afterWrites(), this.#space, session);
    this.#sessions.delete(session.sessionId);
    this.#held.forgetSession(session.sessionId);
  }

  #undoToMark(): void {
    assert(this.#held.count === 0, "sends are accepted after everything is written");
    this.#tx.exec("ROLLBACK TO before_sends");
    // Only what the database says is true after this.
    this.#spaceRow = undefined;
    this.#sessions.clear();
    this.#held.forgetAll();
  }

  #afterWrites(): Sqlite {
    this.#write();
    return this.#tx;
  }

  #write(): void {
    if (this.#held.count > 0) writeDecided(this.#tx, this.#space, this.#held.take());
  }
}

// One transaction on one space for many commits: the space is locked once, sessions and members are asked for together, and
// what is decided is held back and written in one go. A commit sees what those before it decided: sessions and verdicts
// from here, and whatever else is asked of the database after what is held back was written there.
// Why: docs/decisions/0057.

import assert from "node:assert/strict";
import type { SendsOutcome, SendToAccept } from "@claudemesh/protocol/messages/commit-sends";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type { KnownDraft } from "../../core/known-space.ts";
import { ready, waitFor } from "../../ports/flow.ts";
import type { OpenRow, SessionRow, SpaceRef, SpaceRow } from "../../ports/rows.ts";
import type { SpaceTransaction, TransactionHints } from "../../ports.ts";
import { HeldWrites } from "../held-writes.ts";
import { writeDecided } from "./decided-rows.ts";
import {
  insertOpen,
  isLiveMember,
  lockSession,
  lockSpace,
  lockWriters,
  selectOpen,
  upsertSession,
} from "./session-rows.ts";
import { viewOf } from "./space-view.ts";

export type AcceptSends = (
  tx: PostgresTransaction,
  meshId: string,
  sends: readonly SendToAccept[],
) => Promise<SendsOutcome>;

/** The space as it was found and as it is left, and the sessions that were looked at. */
export type LeftRows = {
  readonly foundSeq: number;
  readonly space: SpaceRow;
  readonly sessions: readonly SessionRow[];
};

export class SharedTransaction {
  readonly #tx: PostgresTransaction;
  readonly #space: SpaceRef;
  readonly #acceptSends: AcceptSends;
  readonly #writers: readonly NonNullable<TransactionHints["writer"]>[];
  #spaceRow: Promise<SpaceRow | undefined> | undefined;
  readonly #sessions = new Map<string, Promise<SessionRow | undefined>>();
  readonly #members = new Map<string, Promise<boolean>>();
  readonly #held = new HeldWrites();
  readonly body: SpaceTransaction;
  #work = 0;

  constructor(
    tx: PostgresTransaction,
    space: SpaceRef,
    known: KnownDraft,
    hints: readonly TransactionHints[],
    acceptSends: AcceptSends,
  ) {
    this.#tx = tx;
    this.#space = space;
    this.#acceptSends = acceptSends;
    const writers = hints.flatMap(({ writer }) => writer ?? []);
    this.#writers = [...new Map(writers.map((writer) => [writer.sessionId, writer])).values()];
    this.body = this.#createBody(known);
  }

  /** What its bodies have cost so far. */
  get work(): number {
    return this.#work;
  }

  /** Before the transaction is committed: everything that was decided is on its way, and COMMIT behind it. */
  finish(): void {
    void this.#write();
  }

  /** What the rows without a seq will be when this is committed; undefined: the space was not looked at. */
  async left(): Promise<LeftRows | undefined> {
    const space = await this.#spaceRow;
    if (space === undefined) return undefined;
    const sessions = await Promise.all(this.#sessions.values());
    return {
      foundSeq: space.lastSeq,
      space: this.#held.space(space),
      sessions: sessions.flatMap((row) => (row === undefined ? [] : this.#held.session(row))),
    };
  }

  #createBody(known: KnownDraft): SpaceTransaction {
    const space = this.#space;
    const view = viewOf(
      { query: (text, values, name) => this.#afterWrites((tx) => tx.query(text, values, name)) },
      space,
    );
    return {
      ...view,
      known,
      worked: (units) => {
        this.#work += units;
      },
      lockSpace: () => waitFor(this.#lockSpace()),
      lockSession: (sessionId) => waitFor(this.#lockSession(sessionId)),
      isLiveMember: (pubkey) => waitFor(this.#isLiveMember(pubkey)),
      findVerdicts: (sessionId, localSeqs) => {
        const held = this.#held.verdictsOf(sessionId, localSeqs);
        return held === undefined ? view.findVerdicts(sessionId, localSeqs) : ready(() => held);
      },
      findOpen: (pubkey, openHash) => waitFor(this.#afterWrites((tx) => selectOpen(tx, space, pubkey, openHash))),
      insertOpen: (open: OpenRow) => waitFor(this.#afterWrites((tx) => insertOpen(tx, space, open))),
      putSession: (session) => waitFor(this.#putSession(session)),
      writeAccepted: (writes) => ready(() => this.#held.accept(writes)),
      writeRejected: (verdict) => ready(() => this.#held.decide(verdict)),
      mark: () => waitFor(this.#afterWrites((tx) => tx.script("SAVEPOINT before_sends"))),
      undoToMark: () => waitFor(this.#undoToMark()),
      acceptSends: (sends) => waitFor(this.#afterWrites((tx) => this.#acceptSends(tx, space.meshId, sends))),
    };
  }

  // The lock is the first statement that looks at anything; what travels behind it runs after it was granted.
  async #lockSpace(): Promise<SpaceRow | undefined> {
    if (this.#spaceRow === undefined) {
      this.#spaceRow = this.#note(lockSpace(this.#tx, this.#space));
      this.#foresee();
    }
    const row = await this.#spaceRow;
    return row && this.#held.space(row);
  }

  /** Asks for everybody's session and membership at once. */
  #foresee(): void {
    if (this.#writers.length === 0) return;
    const found = this.#note(lockWriters(this.#tx, this.#space, this.#writers));
    for (const [index, { sessionId, memberPubkey }] of this.#writers.entries()) {
      this.#sessions.set(sessionId, this.#note(found.then((writers) => writers[index]?.session)));
      this.#members.set(memberPubkey, this.#note(found.then((writers) => writers[index]?.live === true)));
    }
  }

  async #lockSession(sessionId: string): Promise<SessionRow | undefined> {
    let row = this.#sessions.get(sessionId);
    if (row === undefined) {
      row = this.#afterWrites((tx) => lockSession(tx, this.#space, sessionId));
      this.#sessions.set(sessionId, this.#note(row));
    }
    const session = await row;
    return session && this.#held.session(session);
  }

  #isLiveMember(pubkey: string): Promise<boolean> {
    let live = this.#members.get(pubkey);
    if (live === undefined) {
      live = this.#note(isLiveMember(this.#tx, this.#space.meshId, pubkey));
      this.#members.set(pubkey, live);
    }
    return live;
  }

  async #putSession(session: SessionRow): Promise<void> {
    this.#sessions.delete(session.sessionId);
    this.#held.forgetSession(session.sessionId);
    await this.#afterWrites((tx) => upsertSession(tx, this.#space, session));
  }

  async #undoToMark(): Promise<void> {
    assert(this.#held.count === 0, "sends are accepted after everything is written");
    // Only what the database says is true after this.
    this.#spaceRow = undefined;
    this.#sessions.clear();
    this.#held.forgetAll();
    await this.#note(this.#tx.script("ROLLBACK TO SAVEPOINT before_sends"));
  }

  /** The statement travels behind what is held back, and fails with it. */
  async #afterWrites<T>(send: (tx: PostgresTransaction) => Promise<T>): Promise<T> {
    const written = this.#write();
    const answer = this.#note(send(this.#tx));
    await written;
    return answer;
  }

  #write(): Promise<unknown> {
    if (this.#held.count === 0) return Promise.resolve();
    return this.#note(writeDecided(this.#tx, this.#space, this.#held.take()));
  }

  /** Where nobody looks at an answer, COMMIT fails with it. */
  #note<T>(sent: Promise<T>): Promise<T> {
    sent.catch(() => undefined);
    return sent;
  }
}

// One transaction on one space for many commits: the space is locked once, sessions and members are asked for together, and
// what is decided is buffered and written in one go. A commit sees what those before it decided: sessions and verdicts
// from here, and for everything else the database is asked after the buffer was written there.
// Why: docs/decisions/0057.
import assert from "node:assert/strict";
import type { SendsOutcome, SendToAccept } from "@claudemesh/protocol/messages/commit-sends";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { ready, waitFor } from "../../ports/flow.ts";
import type { OpenRow, SessionRow, SpaceRef, SpaceRow } from "../../ports/rows.ts";
import type { TransactionHints } from "../../ports.ts";
import type { PlainTransaction } from "../cached/cached-transaction.ts";
import { WriteBuffer } from "../write-buffer.ts";
import type { RowsAfterCommit } from "./optimistic-commit.ts";
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
import { writeBatch } from "./write-batch.ts";

export type AcceptSends = (
  tx: PostgresTransaction,
  meshId: string,
  sends: readonly SendToAccept[],
) => Promise<SendsOutcome>;

export class SharedTransaction {
  readonly #tx: PostgresTransaction;
  readonly #space: SpaceRef;
  readonly #acceptSends: AcceptSends;
  readonly #writers: readonly NonNullable<TransactionHints["writer"]>[];
  #spaceRow: Promise<SpaceRow | undefined> | undefined;
  readonly #sessions = new Map<string, Promise<SessionRow | undefined>>();
  readonly #members = new Map<string, Promise<boolean>>();
  readonly #buffer = new WriteBuffer();
  readonly body: PlainTransaction;
  #work = 0;

  constructor(tx: PostgresTransaction, space: SpaceRef, hints: readonly TransactionHints[], acceptSends: AcceptSends) {
    this.#tx = tx;
    this.#space = space;
    this.#acceptSends = acceptSends;
    const writers = hints.flatMap(({ writer }) => writer ?? []);
    this.#writers = [...new Map(writers.map((writer) => [writer.sessionId, writer])).values()];
    this.body = this.#createBody();
  }

  /** What its bodies have cost so far. */
  get work(): number {
    return this.#work;
  }

  /** Sends everything that was decided, ahead of COMMIT. */
  finish(): void {
    void this.#write();
  }

  /** Undefined where the space was not looked at, or does not exist. */
  async rowsAfterCommit(): Promise<RowsAfterCommit | undefined> {
    const space = await this.#spaceRow;
    if (space === undefined) return undefined;
    const sessions = await Promise.all(this.#sessions.values());
    return {
      foundSeq: space.lastSeq,
      space: this.#buffer.space(space),
      sessions: sessions.flatMap((row) => (row === undefined ? [] : this.#buffer.session(row))),
    };
  }

  #createBody(): PlainTransaction {
    const space = this.#space;
    const view = viewOf(
      { query: (text, values, name) => this.#afterWrites((tx) => tx.query(text, values, name)) },
      space,
    );
    return {
      ...view,
      worked: (units) => {
        this.#work += units;
      },
      lockSpace: () => waitFor(this.#lockSpace()),
      lockSession: (sessionId) => waitFor(this.#lockSession(sessionId)),
      isLiveMember: (pubkey) => waitFor(this.#isLiveMember(pubkey)),
      findVerdicts: (sessionId, localSeqs) => this.#buffer.findVerdicts(sessionId, localSeqs, view.findVerdicts),
      findOpen: (pubkey, openHash) => waitFor(this.#afterWrites((tx) => selectOpen(tx, space, pubkey, openHash))),
      insertOpen: (open: OpenRow) => waitFor(this.#afterWrites((tx) => insertOpen(tx, space, open))),
      putSession: (session) => waitFor(this.#putSession(session)),
      writeAccepted: (writes) => ready(() => this.#buffer.accept(writes)),
      writeRejected: (verdict) => ready(() => this.#buffer.decide(verdict)),
      mark: () => waitFor(this.#afterWrites((tx) => tx.script("SAVEPOINT before_sends"))),
      undoToMark: () => waitFor(this.#undoToMark()),
      acceptSends: (sends) => waitFor(this.#afterWrites((tx) => this.#acceptSends(tx, space.meshId, sends))),
    };
  }

  // The lock is the first statement that looks at anything; what travels behind it runs after it was granted.
  async #lockSpace(): Promise<SpaceRow | undefined> {
    if (this.#spaceRow === undefined) {
      this.#spaceRow = this.#note(lockSpace(this.#tx, this.#space));
      this.#prefetchWriters();
    }
    const row = await this.#spaceRow;
    return row && this.#buffer.space(row);
  }

  /** Asks for the sessions and memberships of all writers at once. */
  #prefetchWriters(): void {
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
    return session && this.#buffer.session(session);
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
    this.#buffer.forgetSession(session.sessionId);
    await this.#afterWrites((tx) => upsertSession(tx, this.#space, session));
  }

  async #undoToMark(): Promise<void> {
    assert(this.#buffer.count === 0, "sends are accepted after everything is written");
    // What was read or decided before the mark is asked of the database again.
    this.#spaceRow = undefined;
    this.#sessions.clear();
    this.#buffer.forgetAll();
    await this.#note(this.#tx.script("ROLLBACK TO SAVEPOINT before_sends"));
  }

  /** The statement travels behind what was buffered, and fails with it. */
  async #afterWrites<T>(send: (tx: PostgresTransaction) => Promise<T>): Promise<T> {
    const written = this.#write();
    const answer = this.#note(send(this.#tx));
    await written;
    return answer;
  }

  #write(): Promise<unknown> {
    if (this.#buffer.count === 0) return Promise.resolve();
    return this.#note(writeBatch(this.#tx, this.#space, this.#buffer.take()));
  }

  /** Where no body looks at the answer, COMMIT fails with it. */
  #note<T>(sent: Promise<T>): Promise<T> {
    sent.catch(() => undefined);
    return sent;
  }
}

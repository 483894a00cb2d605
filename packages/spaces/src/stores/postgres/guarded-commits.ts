// Commits of one session that are decided before anything is asked, on what is remembered, and written by one statement that
// takes effect only if all of that still holds: one round trip. Whatever is not remembered is left to a transaction that asks.
// Why: docs/decisions/0070.
import { transactionWorkMax } from "@claudemesh/protocol/spaces/work";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type { KnownDraft } from "../../core/known-space.ts";
import { type Flow, ready } from "../../ports/flow.ts";
import type { SpaceRef } from "../../ports/rows.ts";
import type { SpaceTransaction } from "../../ports.ts";
import { type Decided, HeldWrites } from "../held-writes.ts";
import { type Guard, isWhollyGuarded, writeGuarded } from "./guarded-rows.ts";
import type { LeftRows } from "./shared-transaction.ts";
import { entitiesPerLook } from "./space-view.ts";

/** Something was asked that is not remembered. Never leaves this file. */
class NotRemembered extends Error {}

type Body = (tx: SpaceTransaction) => Flow<unknown>;

export class GuardedCommits {
  readonly values: readonly unknown[];
  readonly #decided: Decided;
  readonly #guard: Guard;
  readonly left: LeftRows;

  private constructor(values: readonly unknown[], held: HeldWrites, guard: Guard) {
    this.values = values;
    this.#guard = guard;
    const { space, session } = guard;
    this.left = { foundSeq: space.lastSeq, space: held.space(space), sessions: [held.session(session)] };
    this.#decided = held.take();
  }

  /**
   * Undefined: to be decided by a transaction that asks. So is every answer that leaves nothing behind, such as a refusal:
   * no statement would find that it was given on something that is not so any more.
   */
  static decide(bodies: readonly Body[], guard: Guard, known: KnownDraft): GuardedCommits | undefined {
    const held = new HeldWrites();
    let work = 0;
    const tx = transactionOn(guard, known, held, (units) => {
      work += units;
    });
    const values: unknown[] = [];
    for (const body of bodies) {
      // Nothing else has a turn until all of them are decided.
      if (work >= transactionWorkMax) return undefined;
      const before = held.count;
      const value = runAsRemembered(body(tx));
      if (value === undefined || held.count === before) return undefined;
      values.push(value.answer);
    }
    const commits = new GuardedCommits(values, held, guard);
    return isWhollyGuarded(commits.#decided) ? commits : undefined;
  }

  /** False: nothing was written, because something is not what was decided on. */
  write(tx: PostgresTransaction, space: SpaceRef): Promise<boolean> {
    return writeGuarded(tx, space, this.#decided, this.#guard);
  }
}

function runAsRemembered(flow: Flow<unknown>): { readonly answer: unknown } | undefined {
  try {
    const taken = flow.next();
    return taken.done === true ? { answer: taken.value } : undefined;
  } catch (error) {
    if (error instanceof NotRemembered) return undefined;
    throw error;
  }
}

function transactionOn(
  { space, session }: Guard,
  known: KnownDraft,
  held: HeldWrites,
  worked: SpaceTransaction["worked"],
): SpaceTransaction {
  const ask = (): never => {
    throw new NotRemembered();
  };
  return {
    known,
    worked,
    entitiesPerLook,
    lockSpace: () => ready(() => held.space(space)),
    lockSession: (id) => ready(() => (id === session.sessionId ? held.session(session) : ask())),
    // The statement looks whether this is so.
    isLiveMember: (pubkey) => ready(() => pubkey === session.memberPubkey || ask()),
    findVerdicts: (id, localSeqs) => ready(() => held.verdictsOf(id, localSeqs) ?? ask()),
    writeAccepted: (writes) => ready(() => held.accept(writes)),
    writeRejected: (verdict) => ready(() => held.decide(verdict)),
    findSpace: ask,
    findSession: ask,
    findBranches: ask,
    listBranches: ask,
    readTails: ask,
    readWrites: ask,
    readLayers: ask,
    listEntityIds: ask,
    readLog: ask,
    readMerges: ask,
    findInvocation: ask,
    findOpen: ask,
    insertOpen: ask,
    putSession: ask,
    mark: ask,
    undoToMark: ask,
    acceptSends: ask,
  };
}

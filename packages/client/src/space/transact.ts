// Runs a transaction's function until its commit is accepted: loads what it reads, builds, submits, and after a
// conflict builds again on the new state, a limited number of times. Every end but acceptance is a named error.
// Why: docs/decisions/0027.
import { NotLoaded, Transaction, type Tx } from "./building/transaction.ts";
import type { Replica } from "./replica.ts";
import type { Branch } from "./session/branches.ts";
import { isRebuildable } from "./session/commit-answer.ts";
import type { Verdict } from "./session/integration.ts";
import type { Draft } from "./session/session-state.ts";
import { ConflictError, ownError, type SpaceError } from "./space-errors.ts";

export type TransactOptions = {
  /** How often it is built again after a conflict. Default: 5. */
  readonly retries?: number;
};

export type TransactResult<T> = {
  /** The seq of the commit, or of the snapshot where nothing was written and so nothing was sent. */
  readonly seq: number;
  /** Undefined where nothing was sent. */
  readonly localSeq: number | undefined;
  readonly resolvedPendingReads: readonly { readonly localSeq: number; readonly seq: number }[];
  /** The broker had decided it before, and its first answer was lost. */
  readonly replayed: boolean;
  /** How often the function's result was submitted. */
  readonly attempts: number;
  /** The return value of the function, in the run that was accepted. */
  readonly value: T;
};

export const defaultRetries = 5;
/** A function that derives ids from what it reads needs one run for each such step. */
const loadsMax = 256;
/** How long a conflict waits for the frames that explain it before the function simply runs again. */
const refreshMs = 2_000;

/** Runs synchronously up to the submission where everything is loaded: that is what makes `commit` synchronous. */
export async function runTransaction<T>(
  replica: Replica,
  branch: Branch,
  build: (tx: Tx) => T,
  sleep: (delayMs: number) => Promise<void>,
  { retries = defaultRetries }: TransactOptions = {},
): Promise<TransactResult<T>> {
  replica.checkAlive();
  for (let attempts = 1; ; attempts += 1) {
    let built = buildOnce(replica, branch, build);
    for (let loads = 0; built.kind === "missing"; loads += 1) {
      if (loads >= loadsMax) throw ownError("LoadLimitError", undefined, { ids: built.ids });
      if (built.lacksSealing) await replica.sealing.load();
      await replica.load(branch, built.ids);
      built = buildOnce(replica, branch, build);
    }
    const { value, draft } = built;
    if (draft === undefined) {
      return { seq: branch.tiers.seq, localSeq: undefined, resolvedPendingReads: [], replayed: false, attempts, value };
    }
    const { localSeq, verdict } = replica.submit(draft);
    const decided = await verdict;
    if (decided.type === "accepted") return { ...resultOf(decided), localSeq, attempts, value };
    if (!isRebuildable(decided.error) || attempts > retries) throw afterAttempts(decided.error, attempts);
    await refreshed(replica, branch, decided.error, sleep);
    await replica.backoff(attempts);
  }
}

export function resultOf({ seq, resolvedPendingReads, replayed }: Extract<Verdict, { type: "accepted" }>) {
  return { seq, resolvedPendingReads, replayed };
}

/** The same error with the number of attempts. */
export function afterAttempts(error: SpaceError, attempts: number): SpaceError {
  error.attempts = attempts;
  return error;
}

type Built<T> =
  | { readonly kind: "built"; readonly value: T; readonly draft: Draft | undefined }
  | { readonly kind: "missing"; readonly ids: readonly string[]; readonly lacksSealing: boolean };

/**
 * SPC-14: one run on one snapshot. The function is synchronous, so that nothing can come between two of its reads;
 * anything that arrives meanwhile in another way waits until it has ended.
 */
function buildOnce<T>(replica: Replica, branch: Branch, build: (tx: Tx) => T): Built<T> {
  const { integration } = replica.state;
  if (integration.isHeld) {
    throw ownError("InvalidTransactionError", "A transaction was started inside another; run one after the other.");
  }
  const tx = new Transaction(branch, replica.sealing.seal);
  integration.hold();
  let value: T;
  try {
    value = build(tx);
  } catch (error) {
    if (error instanceof NotLoaded && lacksSomething(tx)) return missingOf(tx);
    throw error;
  } finally {
    tx.end();
    if (integration.release()) queueMicrotask(() => replica.run(replica.state.advance()));
  }
  if (isThenable(value)) {
    // No code awaits the promise of an async function, and one that goes on with its ended `tx` rejects: unhandled,
    // that would end the whole program.
    value.then(undefined, () => undefined);
    const message = "A transaction's function is synchronous; wait for what it needs before it, and return no promise.";
    throw ownError("InvalidTransactionError", message);
  }
  // The function read something that is not loaded, and swallowed the exception: its result is not complete.
  if (lacksSomething(tx)) return missingOf(tx);
  // Marks the entities as used just now, so that they stay watched; one with own work alone gets a base of its own.
  replica.run(replica.state.want(branch, tx.used));
  return { kind: "built", value, draft: tx.isEmpty ? undefined : tx.draft() };
}

function lacksSomething(tx: Transaction): boolean {
  return tx.missing.length > 0 || tx.lacksSealing;
}

function missingOf({ missing, lacksSealing }: Transaction): Built<never> {
  return { kind: "missing", ids: missing, lacksSealing };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

/** Waits for the state that the conflict is about, so that the next try does not meet the same conflict. */
async function refreshed(
  replica: Replica,
  branch: Branch,
  error: SpaceError,
  sleep: (delayMs: number) => Promise<void>,
): Promise<void> {
  if (!(error instanceof ConflictError)) return;
  const own = error.conflicts.filter((conflict) => conflict.branch === branch.name && branch.watch.isLive(conflict.id));
  const seq = own.reduce((highest, { actual }) => Math.max(highest, actual.seq), 0);
  const isThere = () => branch.tiers.seq >= seq;
  if (!isThere()) await Promise.race([replica.until(isThere), sleep(refreshMs)]);
}

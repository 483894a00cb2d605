// Puts the spaces cache around a store's transaction. The reads of the present are answered from the cache as far as it goes,
// and by the store for the rest; the lock checks the cache, and what is written teaches it. Neither the services nor the plain
// transaction know that there is a cache.
import type { LaterWrites } from "../../core/stale-reads.ts";
import type { Flow } from "../../ports/flow.ts";
import type { PresentReads, SpaceTransaction } from "../../ports.ts";
import { presentReads } from "../../services/present-reads.ts";
import type { SpaceCacheOverlay } from "./space-cache.ts";

export type PlainTransaction = Omit<SpaceTransaction, "present">;

export function cachedTransaction(plain: PlainTransaction, cache: SpaceCacheOverlay): SpaceTransaction {
  return {
    ...plain,
    present: cachedReads(presentReads(plain), cache),
    // SPC-17: what is known of another seq is forgotten here, under the space's lock.
    lockSpace: () => after(plain.lockSpace(), (space) => space && cache.checkSeq(space.lastSeq)),
    writeAccepted: (writes) =>
      after(plain.writeAccepted(writes), () => {
        const { commit, changes, createdBranch, deletedBranch } = writes;
        if (createdBranch === undefined && deletedBranch === undefined)
          cache.addCommit(commit.seq, commit.branch, changes);
        else cache.forget();
      }),
    undoToMark: () => after(plain.undoToMark(), () => cache.forget()),
  };
}

/** The flow is an argument, so that its statement is sent when the question is asked, and not when its answer is looked at. */
function* after<T>(flow: Flow<T>, then: (answer: T) => void): Flow<T> {
  const answer = yield* flow;
  then(answer);
  return answer;
}

function cachedReads(plain: PresentReads, cache: SpaceCacheOverlay): PresentReads {
  return {
    branches: function* (names) {
      const cached = names.flatMap((name) => cache.branch(name) ?? []);
      const missing = names.filter((name) => cache.branch(name) === undefined);
      const read = missing.length === 0 ? [] : yield* plain.branches(missing);
      for (const branch of read) cache.addBranch(branch);
      return [...cached, ...read];
    },
    states: (asks, lastSeq, work) =>
      fillMisses(
        asks,
        ({ branch, entityId }) => cache.state(branch.name, entityId),
        (missing) => plain.states(missing, lastSeq, work),
      ),
    laterWrites: (asks, work) =>
      fillMisses(
        asks,
        ({ branch, entityId, afterSeq, upTo }): LaterWrites | undefined => {
          const writes = upTo < cache.seq ? undefined : cache.writes(branch, entityId, afterSeq);
          return writes && { writes, cut: false };
        },
        (missing) => plain.laterWrites(missing, work),
      ),
    layers: (branch, asks, work) =>
      fillMisses(
        asks,
        ({ entityId, seq }) => cache.layer(branch, entityId, seq),
        (missing) => plain.layers(branch, missing, work),
      ),
  };
}

/** One answer for each ask, in their order. The store is asked once, for all that the cache does not have. */
function* fillMisses<Ask, Answer>(
  asks: readonly Ask[],
  lookUp: (ask: Ask) => Exclude<Answer, undefined> | undefined,
  read: (missing: readonly Ask[]) => Flow<readonly Answer[]>,
): Flow<Answer[]> {
  const cached = asks.map(lookUp);
  const missing = asks.filter((_, index) => cached[index] === undefined);
  if (missing.length === 0) return cached as Answer[];
  const answers = (yield* read(missing)).values();
  return cached.map((answer) => answer ?? (answers.next().value as Answer));
}

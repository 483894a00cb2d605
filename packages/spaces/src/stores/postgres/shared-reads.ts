// Reading spaces outside of transactions. Every read begins with the space's row and a branch, and most go on with
// documents: reads that ask for such while other questions are on their way share the next question. It leaves after all of
// them have asked, so that its answer is no older than one of their own would be.
// Why: docs/tuning-log.md#readers-share-questions.
import { Batcher, questions } from "@claudemesh/storage/batcher";
import { charactersOf } from "../../core/entity-history.ts";
import { waitFor } from "../../ports/flow.ts";
import type { Branch, SpaceRef, SpaceRow, Tail, TailAsk } from "../../ports/rows.ts";
import type { SpaceView } from "../../ports.ts";
import { FairTurns } from "../../services/sync/fair-turns.ts";
import { selectBranches } from "./branch-rows.ts";
import { selectTails } from "./entity-rows.ts";
import type { Reading } from "./reading.ts";
import { selectSpace } from "./session-rows.ts";
import { viewOf } from "./space-view.ts";

/** A document may have a megabyte. */
const documentsPerQuestion = 32;
/** Documents of more characters are assembled in a turn of the event loop of their own. */
const smallAnswerCharacters = 65_536;

type BranchesAsked = { readonly space: SpaceRef; readonly names: readonly string[] };
type TailsAsked = { readonly space: SpaceRef; readonly asks: readonly TailAsk[]; readonly limit: number };

export function createSharedReads(db: Reading): (space: SpaceRef) => SpaceView {
  const spaces = new Batcher<SpaceRef, SpaceRow | undefined>(questions, {
    keyOf,
    run: async (asked) => {
      const row = await selectSpace(db, asked[0] as SpaceRef);
      return asked.map(() => row);
    },
  });
  const branches = new Batcher<BranchesAsked, Branch[]>(questions, {
    keyOf: ({ space }) => keyOf(space),
    run: async (asked) => {
      const { space } = asked[0] as BranchesAsked;
      const found = await selectBranches(db, space, [...new Set(asked.flatMap(({ names }) => names))]);
      return asked.map(({ names }) => found.filter(({ name }) => names.includes(name)));
    },
  });
  const tails = new Batcher<TailsAsked, Tail[]>(questions, {
    keyOf: ({ space, limit }) => `${limit}/${keyOf(space)}`,
    weight: { of: ({ asks }) => asks.length, max: documentsPerQuestion },
    run: async (asked) => {
      const { space, limit } = asked[0] as TailsAsked;
      const asks = asked.flatMap((each) => each.asks);
      const found = await selectTails(db, space, asks, limit);
      return asked.map((each) => found.splice(0, each.asks.length));
    },
  });
  const turns = new FairTurns();
  // Reads that shared a question would otherwise all assemble their documents in the turn in which its answer comes.
  const inTurn = (space: SpaceRef, found: Tail[]): Tail[] | Promise<Tail[]> => {
    const characters = found.reduce((sum, tail) => sum + charactersOf(tail), 0);
    if (characters <= smallAnswerCharacters) return found;
    return new Promise((resolve) => turns.take(keyOf(space), () => resolve(found)));
  };
  return (space) => ({
    ...viewOf(db, space),
    findSpace: () => waitFor(spaces.submit(space)),
    findBranches: (names) => waitFor(branches.submit({ space, names })),
    readTails: (asks, limit) => waitFor(tails.submit({ space, asks, limit }).then((found) => inTurn(space, found))),
  });
}

const keyOf = ({ meshId, spaceId }: SpaceRef) => `${meshId}/${spaceId}`;

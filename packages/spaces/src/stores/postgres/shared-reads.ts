// Reading spaces outside of transactions. Every read begins with the space's row and a branch, and most go on with
// documents: whoever asks for such while others' questions are on their way shares the next one. A question leaves after it
// was asked, so that its answer is no older than one of its own would be. Names were checked where they came in: there is
// nothing that one could say to make a neighbour's question fail.
import { NaturalBatches } from "@claudemesh/storage/natural-batches";
import type { Branch, SpaceRef, SpaceRow, Tail, TailAsk } from "../../ports/rows.ts";
import { answerOf } from "../../ports/steps.ts";
import type { SpaceView } from "../../ports.ts";
import { selectBranches } from "./branch-rows.ts";
import { selectTails } from "./entity-rows.ts";
import type { Reading } from "./reading.ts";
import { selectSpace } from "./session-rows.ts";
import { viewOf } from "./space-view.ts";

const rowsPerQuestion = 256;
/** A document may have a megabyte. */
const documentsPerQuestion = 32;
const questionsAtOnce = 2;
const documentQuestionsAtOnce = 4;

type BranchesAsked = { readonly space: SpaceRef; readonly names: readonly string[] };
type TailsAsked = { readonly space: SpaceRef; readonly asks: readonly TailAsk[]; readonly limit: number };

export function createSharedReads(db: Reading): (space: SpaceRef) => SpaceView {
  const spaces = new NaturalBatches<SpaceRef, SpaceRow | undefined>({
    maxBatch: rowsPerQuestion,
    maxConcurrent: questionsAtOnce,
    run: (batch) =>
      perGroup(batch, keyOf, async (group, space) => {
        const row = await selectSpace(db, space);
        return group.map(() => row);
      }),
  });
  const branches = new NaturalBatches<BranchesAsked, Branch[]>({
    maxBatch: rowsPerQuestion,
    maxConcurrent: questionsAtOnce,
    run: (batch) =>
      perGroup(
        batch,
        ({ space }) => keyOf(space),
        async (group, { space }) => {
          const found = await selectBranches(db, space, [...new Set(group.flatMap(({ names }) => names))]);
          return group.map(({ names }) => found.filter(({ name }) => names.includes(name)));
        },
      ),
  });
  const tails = new NaturalBatches<TailsAsked, Tail[]>({
    maxBatch: rowsPerQuestion,
    weigh: ({ asks }) => asks.length,
    maxWeight: documentsPerQuestion,
    maxConcurrent: documentQuestionsAtOnce,
    run: (batch) =>
      perGroup(
        batch,
        ({ space, limit }) => `${limit}/${keyOf(space)}`,
        async (group, { space, limit }) => {
          const asks = group.flatMap((each) => each.asks);
          const found = await selectTails(db, space, asks, limit);
          return group.map((each) => found.splice(0, each.asks.length));
        },
      ),
  });
  return (space) => ({
    ...viewOf(db, space),
    findSpace: () => answerOf(spaces.submit(space)),
    findBranches: (names) => answerOf(branches.submit({ space, names })),
    readTails: (asks, limit) => answerOf(tails.submit({ space, asks, limit })),
  });
}

const keyOf = ({ meshId, spaceId }: SpaceRef) => `${meshId}/${spaceId}`;

/** One question for each group, all at once; an answer for each item, in their order. */
async function perGroup<Item, Answer>(
  items: readonly Item[],
  groupOf: (item: Item) => string,
  ask: (group: readonly Item[], first: Item) => Promise<readonly Answer[]>,
): Promise<Answer[]> {
  const groups = Map.groupBy(items.entries(), ([, item]) => groupOf(item));
  const answers: Answer[] = Array.from({ length: items.length });
  await Promise.all(
    [...groups.values()].map(async (group) => {
      const members = group.map(([, item]) => item);
      const found = await ask(members, members[0] as Item);
      for (const [index, [place]] of group.entries()) answers[place] = found[index] as Answer;
    }),
  );
  return answers;
}

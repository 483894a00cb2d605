// What hears of a COMMIT before it leaves and after it has returned: fault points, and tests. A store knows none of them.
// It gives each transaction a label that says what kind of work it carries; the hooks are given where the store is made.
import { type FailpointName, failpointNames } from "./failpoint-names.ts";
import type { Failpoints } from "./failpoints.ts";

type LabelOf<Name> = Name extends `${infer Label}.${"before" | "after"}_commit` ? Label : never;

/** The kinds of work that fault points can aim at. */
export type CommitLabel = LabelOf<FailpointName>;

/** Called only for transactions with a label; with several where work of different kinds shares one. */
export type CommitHooks<Done = void | Promise<void>> = {
  /** Inside the transaction, after the answer to its last statement. A throw rolls back; another try calls it again. */
  readonly before: (...labels: readonly CommitLabel[]) => Done;
  /** Committed, and no caller has its answer yet. A throw reaches the callers, as a crash would. */
  readonly after: (...labels: readonly CommitLabel[]) => Done;
};

/** Undefined where no fault point is set: then COMMIT need not wait for the answer to the last statement. */
export function createCommitHooks(failpoints: Failpoints<FailpointName>): CommitHooks | undefined {
  if (!failpoints.active) return undefined;
  const hit =
    (when: When) =>
    async (...labels: readonly CommitLabel[]) => {
      for (const point of pointsOf(labels, when)) await failpoints.hit(point);
    };
  return { before: hit("before"), after: hit("after") };
}

/** The same for a database that is used synchronously. */
export function createSyncCommitHooks(failpoints: Failpoints<FailpointName>): CommitHooks<void> | undefined {
  if (!failpoints.active) return undefined;
  const hit =
    (when: When) =>
    (...labels: readonly CommitLabel[]) => {
      for (const point of pointsOf(labels, when)) failpoints.hitSync(point);
    };
  return { before: hit("before"), after: hit("after") };
}

type When = "before" | "after";

/** Some labels have a point on one side only. */
function pointsOf(labels: readonly CommitLabel[], when: When): readonly FailpointName[] {
  return labels.flatMap((label) => failpointNames.filter((name) => name === `${label}.${when}_commit`));
}

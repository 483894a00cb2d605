// Runs a long piece of work that comes in small steps, and leaves the rest of the time to others: accepts wait for the
// same thread and the same disk.
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { StorageError } from "@claudemesh/storage/errors";
import { restAfterMs } from "./paced-worker.ts";

export type Pace = {
  /** So many parts of the time are rest, for one of work. */
  readonly restParts: number;
  /** Ends the work after the step under way; the run then rejects. */
  readonly signal: AbortSignal;
};

/** Returns what the work returned. `onStep` hears what each step yielded. */
export async function runPaced<Step, Result>(
  steps: AsyncGenerator<Step, Result>,
  pace: Pace,
  onStep: (step: Step) => void = () => undefined,
): Promise<Result> {
  for (;;) {
    if (pace.signal.aborted) throw new StorageError("closed", "the broker is stopping");
    const startedAtMs = performance.now();
    const { done, value } = await steps.next();
    if (done === true) return value;
    onStep(value);
    const restMs = restAfterMs(performance.now() - startedAtMs, pace.restParts);
    // Also without a rest, other work that waits for this thread comes first.
    await (pace.restParts === 0 ? nextTurn() : sleep(restMs, undefined, { ref: false }));
  }
}

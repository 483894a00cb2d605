// Workers that take jobs and settle them, one round after the other, for a given time or until there are none left.
import { Latencies, type LatencyFigures } from "./latencies.ts";

export type JobsOrder =
  | { readonly do: "fill"; readonly jobs: number }
  | { readonly do: "work"; readonly workers: number; readonly jobsAtOnce: number; readonly durationMs: number }
  | { readonly do: "close" };

/** Every job that was taken is settled and counted. Times are of a round: taking and settling. */
export type JobsResult = LatencyFigures & { readonly answered: number; readonly perSecond: number };

export const nothingDone: JobsResult = { answered: 0, perSecond: 0, p50Ms: 0, p99Ms: 0 };

/** `round` takes up to so many jobs, settles them, and says how many there were. */
export async function workForAWhile(
  { workers, jobsAtOnce, durationMs }: Extract<JobsOrder, { do: "work" }>,
  round: (jobsAtOnce: number) => Promise<number>,
): Promise<JobsResult> {
  const times = new Latencies();
  let answered = 0;
  const startedAtMs = performance.now();
  await Promise.all(
    Array.from({ length: workers }, async () => {
      for (let nowMs = performance.now(); nowMs - startedAtMs < durationMs; ) {
        const jobs = await round(jobsAtOnce);
        if (jobs === 0) return;
        answered += jobs;
        const settledAtMs = performance.now();
        times.add(settledAtMs - nowMs);
        nowMs = settledAtMs;
      }
    }),
  );
  return { answered, perSecond: answered / ((performance.now() - startedAtMs) / 1_000), ...times.figures() };
}

// Logs about one failing thing at a bounded rate: the first at once, then how often it happened since.

const quietMs = 10_000;

/** Calls `write` for the first problem, and after that at most once in ten seconds with the number of those between. */
export function createQuietLog(
  write: (problem: unknown, times: number) => void,
  monotonicMs: () => number = () => performance.now(),
): (problem: unknown) => void {
  let lastMs = Number.NEGATIVE_INFINITY;
  let times = 0;
  return (problem) => {
    times += 1;
    const nowMs = monotonicMs();
    if (nowMs - lastMs < quietMs) return;
    lastMs = nowMs;
    write(problem, times);
    times = 0;
  };
}

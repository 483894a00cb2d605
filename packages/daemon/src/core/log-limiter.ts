// Keeps one failing thing from filling the log: so many lines per interval, then silence, then the number of lines
// that were left out.

export type LogLimiter = {
  /** Undefined: stay silent. Otherwise how many lines were left out since the last one. */
  readonly admit: (nowMs: number) => { readonly leftOut: number } | undefined;
};

export function createLogLimiter(linesPerInterval: number, intervalMs: number): LogLimiter {
  let intervalEndsMs = Number.NEGATIVE_INFINITY;
  let lines = 0;
  let leftOut = 0;
  return {
    admit: (nowMs) => {
      if (nowMs >= intervalEndsMs) {
        intervalEndsMs = nowMs + intervalMs;
        lines = 0;
      }
      if (lines >= linesPerInterval) {
        leftOut++;
        return undefined;
      }
      lines++;
      const admitted = { leftOut };
      leftOut = 0;
      return admitted;
    },
  };
}

/** A row that keeps failing is worth a line after 1, 2, 4, 8 … tries. */
export function isWorthALine(attempts: number): boolean {
  return attempts > 0 && (attempts & (attempts - 1)) === 0;
}

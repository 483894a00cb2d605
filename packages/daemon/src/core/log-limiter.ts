// Keeps one failing thing from filling the log: at most so many entries per interval, and the next entry after that says
// how many were left out.

/** `leftOut` is how many entries were left out since the last one that was written. */
type LogAdmission = { readonly type: "write"; readonly leftOut: number } | { readonly type: "leave_out" };

export type LogLimiter = { readonly admit: (nowMs: number) => LogAdmission };

export function createLogLimiter(entriesPerInterval: number, intervalMs: number): LogLimiter {
  let intervalEndsMs = Number.NEGATIVE_INFINITY;
  let entries = 0;
  let leftOut = 0;
  return {
    admit: (nowMs) => {
      if (nowMs >= intervalEndsMs) {
        intervalEndsMs = nowMs + intervalMs;
        entries = 0;
      }
      if (entries >= entriesPerInterval) {
        leftOut++;
        return { type: "leave_out" };
      }
      entries++;
      const admission: LogAdmission = { type: "write", leftOut };
      leftOut = 0;
      return admission;
    },
  };
}

/** A row that keeps failing is logged after 1, 2, 4, 8 … tries. */
export function isWorthLogging(attempts: number): boolean {
  return attempts > 0 && (attempts & (attempts - 1)) === 0;
}

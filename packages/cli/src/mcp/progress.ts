// Signs of life of a tool that waits, for a host that has asked for them: without any, some give up before the answer.

type Progress = { readonly progress: number; readonly total: number; readonly message: string };

/** Reports until the returned function is called. */
export type ReportProgress = (totalSeconds: number, message: string) => () => void;

const pauseMs = 5_000;

/** `send` is undefined where the host has not asked. */
export function createProgress(send: ((progress: Progress) => Promise<void>) | undefined): ReportProgress {
  if (send === undefined) return () => () => undefined;
  return (total, message) => {
    const startedMs = performance.now();
    const report = () => {
      const progress = Math.min(total, Math.round((performance.now() - startedMs) / 1_000));
      // A host that cannot be reached any more gets no answer either.
      send({ progress, total, message }).catch(() => undefined);
    };
    report();
    const timer = setInterval(report, pauseMs);
    return () => clearInterval(timer);
  };
}

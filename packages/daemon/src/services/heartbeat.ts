// Regular work: one beat after the other, never two at once, however long one takes.
import type { Clock, Log, Timer } from "../ports.ts";

export type Heartbeat = { readonly start: () => void; readonly stop: () => void };

const beatMs = 60_000;

/** The first beat comes at once and has number 0. `isStopping` is for beats that take long. */
export function createHeartbeat(
  clock: Pick<Clock, "setTimer">,
  log: Log,
  beat: (number: number, isStopping: () => boolean) => Promise<void>,
): Heartbeat {
  let timer: Timer | undefined;
  let stopping = false;
  let number = 0;
  const next = (delayMs: number) => {
    timer = clock.setTimer(delayMs, () => {
      void beat(number++, () => stopping)
        .catch((error: unknown) => log.error({ event: "heartbeat_failed", err: error }, "regular work failed"))
        .finally(() => {
          if (!stopping) next(beatMs);
        });
    });
  };
  return {
    start: () => next(0),
    stop: () => {
      stopping = true;
      timer?.cancel();
    },
  };
}

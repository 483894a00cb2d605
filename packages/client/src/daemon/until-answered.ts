// Asks until there is an answer, for calls that may be repeated: reads, and calls whose request carries its identity (a
// send with a client_message_id, a lease with a lease_request_id, an ack). Repeated calls take effect once.
import { setTimeout as sleep } from "node:timers/promises";
import { isErrorBody } from "@claudemesh/protocol/errors";
import { backoffDelayMs } from "@claudemesh/protocol/messages/backoff";
import type { DaemonAnswer } from "./daemon-call.ts";
import { DaemonUnreachable } from "./daemon-failures.ts";

export type UntilAnsweredOptions = {
  /** Stops asking: the signal's reason is thrown, and the outcome of the last try is not known. */
  readonly signal?: AbortSignal;
  /** Called for each try without an answer, or with an answer that says to ask again. */
  readonly onRetry?: (why: DaemonUnreachable | DaemonAnswer<unknown>) => void;
};

export const retryBackoff = { minMs: 100, maxMs: 5_000 };

/** The first answer that does not say "later". Waits for a daemon that cannot be reached, restarts or is busy. */
export async function untilAnswered<Body>(
  ask: () => Promise<DaemonAnswer<Body>>,
  { signal, onRetry }: UntilAnsweredOptions = {},
): Promise<DaemonAnswer<Body>> {
  for (let failures = 1; ; failures++) {
    signal?.throwIfAborted();
    const end = await ask().catch((error: unknown) => {
      if (error instanceof DaemonUnreachable) return error;
      throw error;
    });
    if (!(end instanceof DaemonUnreachable) && !saysLater(end)) return end;
    onRetry?.(end);
    await sleep(
      backoffDelayMs(failures, Math.random(), retryBackoff),
      undefined,
      signal === undefined ? {} : { signal },
    );
  }
}

function saysLater({ status, body }: DaemonAnswer<unknown>): boolean {
  return status >= 400 && isErrorBody(body) && body.retryable;
}

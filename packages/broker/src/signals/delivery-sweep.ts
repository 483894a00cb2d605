// Finds deliveries whose signal was lost: at intervals, asks the store which of the recipients connected here have
// something waiting, and wakes them. A bounded number per question, one question at a time.
import type { Recipient } from "./shared-connections.ts";

export type DeliverySweepOptions = {
  readonly intervalMs: number;
  readonly recipients: () => readonly Recipient[];
  /** Those among them who have an unsettled delivery. */
  readonly findWaiting: (recipients: readonly Recipient[]) => Promise<readonly Recipient[]>;
  readonly wake: (recipient: Recipient) => void;
  readonly onFailure: (error: unknown) => void;
};

export type DeliverySweep = {
  /** Now, and not only when the interval is over. */
  readonly sweep: () => Promise<void>;
  readonly stop: () => void;
};

const recipientsPerQuestion = 500;

export function startDeliverySweep(options: DeliverySweepOptions): DeliverySweep {
  let underway: Promise<void> | undefined;
  let stopped = false;
  const askAll = async (): Promise<void> => {
    const all = options.recipients();
    for (let from = 0; from < all.length && !stopped; from += recipientsPerQuestion) {
      const waiting = await options.findWaiting(all.slice(from, from + recipientsPerQuestion));
      for (const recipient of waiting) options.wake(recipient);
    }
  };
  const sweep = (): Promise<void> => {
    underway ??= askAll()
      .catch(options.onFailure)
      .finally(() => {
        underway = undefined;
      });
    return underway;
  };
  const timer = setInterval(() => void sweep(), options.intervalMs);
  return {
    sweep,
    stop: () => {
      stopped = true;
      clearInterval(timer);
    },
  };
}

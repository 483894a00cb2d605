// What the daemon counts while it runs, as plain numbers: counting must cost nothing and load nothing. How a scrape
// shows them is in render-metrics.ts.
import type { SendAnswer } from "@claudemesh/protocol/messages/send-decision";
import type { Unreadable } from "../core/inbox-message.ts";
import type { TryEnd } from "../core/try-end.ts";
import type { StoredDelivery } from "./receive.ts";

type SendOutcome = "accepted" | "duplicate" | "conflict" | "refused";
type TryOutcomeLabel = "done" | "retry" | "dead" | "not_sent";

export type DaemonCounters = {
  readonly sends: Record<SendOutcome, number>;
  readonly tries: Record<TryOutcomeLabel, number>;
  readonly inbox: { received: number; duplicate: number; reused: number };
  readonly unreadable: Record<Unreadable, number>;
  historyPruned: number;
  retryAfterDedupeExpired: number;
  notOurBroker: number;
};

export function createDaemonCounters(): DaemonCounters {
  return {
    sends: { accepted: 0, duplicate: 0, conflict: 0, refused: 0 },
    tries: { done: 0, retry: 0, dead: 0, not_sent: 0 },
    inbox: { received: 0, duplicate: 0, reused: 0 },
    unreadable: { not_opened: 0, relabelled: 0 },
    historyPruned: 0,
    retryAfterDedupeExpired: 0,
    notOurBroker: 0,
  };
}

export function countSend(counters: DaemonCounters, answer: SendAnswer): void {
  if (answer.status === 409) counters.sends.conflict++;
  else if (answer.body.duplicate === true) counters.sends.duplicate++;
  else counters.sends.accepted++;
}

const tryLabels: Readonly<Record<TryEnd["next"], TryOutcomeLabel>> = {
  done: "done",
  pending: "retry",
  dead: "dead",
  put_back: "not_sent",
};

export function countTry(counters: DaemonCounters, end: TryEnd): void {
  counters.tries[tryLabels[end.next]]++;
  if (end.next === "done" && !end.acceptance.historyAvailable) counters.historyPruned++;
}

export function countDelivery(counters: DaemonCounters, { isNews, isReused, unreadable }: StoredDelivery): void {
  counters.inbox[isNews ? "received" : "duplicate"]++;
  if (isNews && unreadable !== undefined) counters.unreadable[unreadable]++;
  if (isReused) counters.inbox.reused++;
}

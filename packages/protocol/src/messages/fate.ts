// What is known about whether a broker committed a row. A wrong "unknown" costs a question to the broker; a wrong
// "refused" would double an effect.
import type { OutboxStatus } from "./outbox-row.ts";

export type Fate = "unsent" | "refused" | "unknown" | "committed";

export type FateFacts = {
  readonly status: OutboxStatus;
  /** Tries that have ended, in whatever way. */
  readonly attempts: number;
  /** Ended tries without a refusal: time-outs, lost connections, 408, 5xx, crashes. */
  readonly unanswered: number;
  /** The broker has fenced the id, so that no earlier try can still commit. */
  readonly fenced: boolean;
};

export function fateOf(facts: FateFacts): Fate {
  if (facts.status === "done") return "committed";
  if (facts.fenced) return "refused";
  if (facts.status === "inflight" || facts.unanswered > 0) return "unknown";
  return facts.attempts === 0 ? "unsent" : "refused";
}

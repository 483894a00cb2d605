// The life of an outbox row: its states, the only transitions between them, and the effect of each answer of a broker.
// Pure; the daemon's outbox store performs each transition with a compare-and-set.

export const outboxStatuses = ["pending", "inflight", "done", "dead", "aborted"] as const;
export type OutboxStatus = (typeof outboxStatuses)[number];

/**
 * The transitions pending → done and dead → done happen only when the row's fate is found to be committed. `done` and
 * `aborted` are final: nothing frees an id.
 */
export const outboxTransitions: Readonly<Record<OutboxStatus, readonly OutboxStatus[]>> = {
  pending: ["inflight", "dead", "aborted", "done"],
  inflight: ["done", "pending", "dead"],
  dead: ["aborted", "done"],
  done: [],
  aborted: [],
};

export function canTransition(from: OutboxStatus, to: OutboxStatus): boolean {
  return outboxTransitions[from].includes(to);
}

/** How one try at the broker ended, seen from the daemon. */
export type TryOutcome =
  | { readonly type: "answered"; readonly status: number }
  | { readonly type: "timed_out" }
  | { readonly type: "connection_lost" };

/** The effect of a try's outcome on its row. `counts` is what the try adds to the row's fate. */
export type TryVerdict =
  | { readonly next: "done" }
  | { readonly next: "dead"; readonly counts: "refused" }
  /** The refusal is about the link, not the row: the drain stops until the next successful hello. */
  | { readonly next: "pending"; readonly counts: "refused"; readonly retry: "after_hello" }
  | { readonly next: "pending"; readonly counts: "refused" | "unanswered"; readonly retry: "backoff" };

export function judgeTry(outcome: TryOutcome): TryVerdict {
  if (outcome.type !== "answered") return { next: "pending", counts: "unanswered", retry: "backoff" };
  const { status } = outcome;
  if (status === 200 || status === 201) return { next: "done" };
  if (status === 401) return { next: "pending", counts: "refused", retry: "after_hello" };
  if (status === 429) return { next: "pending", counts: "refused", retry: "backoff" };
  if (status === 408) return { next: "pending", counts: "unanswered", retry: "backoff" };
  if (status >= 400 && status < 500) return { next: "dead", counts: "refused" };
  // For 5xx, and for anything that we do not understand, the broker may have committed. Assuming "unknown" is safe.
  return { next: "pending", counts: "unanswered", retry: "backoff" };
}

/**
 * The effect of an answer that arrives after its try was given up. A late success always wins; a late refusal moves no
 * row, it only settles the try that it answers.
 */
export function judgeLateAnswer(status: number): "done" | "settles_its_try" | "nothing" {
  const verdict = judgeTry({ type: "answered", status });
  if (verdict.next === "done") return "done";
  return verdict.counts === "refused" ? "settles_its_try" : "nothing";
}

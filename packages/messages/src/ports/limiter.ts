// The limiter beside a store: a mesh's budget where it is not kept in the accept's own transaction.

export type LimiterDecision =
  /** `spent`: this call took a unit; else the id was counted in this window already. */
  | { readonly type: "ok"; readonly spent: boolean }
  | { readonly type: "denied"; readonly retryAfterSeconds: number }
  /** Whether a unit was spent is not known; asking again in the same window spends none twice. */
  | { readonly type: "unavailable" };

export type Limiter = {
  /**
   * At most one unit of the mesh's budget per (mesh, id, window), however often an id is offered and by whichever
   * broker. Answers within a bound, also when the limiter is away; never rejects.
   */
  readonly consume: (meshId: string, clientMessageId: string, nowMs: number) => Promise<LimiterDecision>;
  /** Whether it takes writes right now. */
  readonly available: () => Promise<boolean>;
};

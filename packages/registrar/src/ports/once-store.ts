// What `once` needs from a store, with its guarantees. SQLite and PostgreSQL stores owe the same. The rules themselves
// are in the protocol's once-state.ts.
import type { OnceAnswer, OnceClaim, OnceEpoch, OnceResolution } from "@claudemesh/protocol/registrar/once-state";

/** Rejects with the refusal of something new. */
export type Admit = () => Promise<void>;

/** A key of one mesh. */
export type OnceKey = { readonly meshId: string; readonly key: string };

export type OnceEpochKey = OnceKey & { readonly epoch: number };

/** The caller's membership ended before the call could change anything. */
export type OnceOutcome = OnceAnswer | { readonly type: "not_a_member" };

/** A key with its newest epoch. */
export type OnceListItem = { readonly key: string; readonly newest: OnceEpoch };

export type OnceListQuery = {
  readonly meshId: string;
  readonly after: string;
  readonly limit: number;
  /** Only keys whose newest epoch is not settled: it runs, or is uncertain. */
  readonly unsettled: boolean;
};

/**
 * Every change is decided and written in one transaction and is durable when the call resolves. Of calls at the same time, in
 * whichever processes, one is first and the others see what it wrote. A call that changes nothing writes nothing.
 */
export type OnceStore = {
  /** `admit` is called before a new epoch begins. Its rejection is ignored where another call has begun the epoch meanwhile. */
  readonly claim: (key: OnceKey, claim: OnceClaim, nowMs: number, admit?: Admit) => Promise<OnceOutcome>;
  readonly renew: (key: OnceEpochKey, holder: string, nowMs: number) => Promise<OnceOutcome>;
  /** `result` is canonical JSON text. */
  readonly record: (
    key: OnceEpochKey,
    record: { readonly holder: string; readonly result: string },
    nowMs: number,
  ) => Promise<OnceOutcome>;
  readonly resolve: (
    key: OnceEpochKey,
    resolution: OnceResolution & { readonly by: string },
    nowMs: number,
  ) => Promise<OnceOutcome>;
  /** Keys of a mesh behind one, in their order. */
  readonly list: (query: OnceListQuery) => Promise<readonly OnceListItem[]>;
  /** The epochs of a key, the newest first. */
  readonly epochs: (key: OnceKey, limit: number) => Promise<OnceEpoch[]>;
};

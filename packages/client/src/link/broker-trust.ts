// Which broker a link believes: the one that proves to hold a key that is known here. Where none is known, the first key
// that is proven is kept, once its broker has taken this member, and no other one is believed after that.
// Why: docs/decisions/0120.

export type BrokerTrust = {
  /** The key that the broker must prove to hold, asked at each connection; undefined: none is known yet. */
  readonly key: () => string | undefined;
  /** Keeps the first key that was proven. False: another one was kept in the meantime, and stands. */
  readonly keep: (key: string) => boolean;
};

/** For as long as this object lives: a key that the caller knows, or else the first one that is proven. */
export function trustInMemory(known?: string): BrokerTrust {
  let kept = known;
  return {
    key: () => kept,
    keep: (key) => {
      kept ??= key;
      return kept === key;
    },
  };
}

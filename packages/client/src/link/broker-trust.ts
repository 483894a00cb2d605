// Which broker a link trusts: the one that proves to hold the pinned key. Where no key is pinned, the first proven key
// is pinned once its broker has accepted this member, and no other key is trusted after that.
// Why: docs/decisions/0120.

export type BrokerTrust = {
  /** The key that the broker must prove to hold, read at each connection; undefined: no key is pinned yet. */
  readonly key: () => string | undefined;
  /** Pins the first proven key. False where another key was pinned in the meantime; that one stays. */
  readonly keep: (key: string) => boolean;
};

/** Trust for as long as this object lives: a key that the caller gives, or else the first proven one. */
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

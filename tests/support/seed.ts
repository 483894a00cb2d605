// One seed decides a whole run. A fresh one each day, printed, and repeatable with CLAUDEMESH_SEED.

export type Random = {
  /** In [0, 1). */
  readonly next: () => number;
  readonly below: (bound: number) => number;
  readonly pick: <T>(items: readonly T[]) => T;
};

export function seedOfTheDay(): number {
  const given = process.env.CLAUDEMESH_SEED;
  const seed = given === undefined ? Math.floor(Date.now() / 86_400_000) : Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error("CLAUDEMESH_SEED must be an integer");
  process.stdout.write(`seed ${seed} (repeat with CLAUDEMESH_SEED=${seed})\n`);
  return seed;
}

/** A small generator with good enough spread for tests; the same numbers on every machine. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (bound: number) => Math.floor(next() * bound);
  const pick = <T>(items: readonly T[]): T => {
    const item = items[below(items.length)];
    if (item === undefined) throw new Error("there is nothing to pick from");
    return item;
  };
  return { next, below, pick };
}

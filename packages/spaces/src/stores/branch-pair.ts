// Two branches as one key, whichever way round they are named.

export function branchPair(a: string, b: string): readonly [string, string] {
  return a < b ? [a, b] : [b, a];
}

// Chance from one seed. Each use draws from a stream of its own, named by what it is for, so that drawing more for one
// use changes nothing in another.
import { hash } from "node:crypto";
import { createRandom, type Random } from "../../../../tests/support/seed.ts";

export type { Random } from "../../../../tests/support/seed.ts";

export function streamOf(seed: number, name: string): Random {
  const digest = hash("sha256", `${seed}/${name}`, "buffer");
  return createRandom(digest.readUInt32LE(0));
}

/** A whole number from the range, both ends included. */
export function between(random: Random, least: number, most: number): number {
  return least + random.below(most - least + 1);
}

export function bytesFrom(random: Random): (length: number) => Uint8Array {
  return (length) => Uint8Array.from({ length }, () => random.below(256));
}

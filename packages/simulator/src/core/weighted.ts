// A choice by weight.
import type { Random } from "./chance.ts";

/** Something else each time, as often as its weight says. */
export function weighted<T>(random: Random, choices: readonly (readonly [weight: number, choice: () => T])[]): T {
  const total = choices.reduce((sum, [weight]) => sum + weight, 0);
  let rest = random.next() * total;
  for (const [weight, choice] of choices) {
    rest -= weight;
    if (rest < 0) return choice();
  }
  throw new Error("weights add up to nothing");
}

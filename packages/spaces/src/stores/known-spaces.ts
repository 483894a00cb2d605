// What a store remembers of the spaces that were committed to last.
// Why: docs/decisions/0056.
import { KnownSpace } from "../core/known-space.ts";
import type { SpaceRef } from "../ports/rows.ts";

const spacesMax = 64;

export class KnownSpaces {
  /** The one that was asked for last stands last. */
  readonly #spaces = new Map<string, KnownSpace>();

  forget(space: SpaceRef): void {
    this.#spaces.delete(keyOf(space));
  }

  of(space: SpaceRef): KnownSpace {
    const key = keyOf(space);
    const known = this.#spaces.get(key) ?? new KnownSpace();
    this.#spaces.delete(key);
    this.#spaces.set(key, known);
    for (const oldest of this.#spaces.keys()) {
      if (this.#spaces.size <= spacesMax) break;
      this.#spaces.delete(oldest);
    }
    return known;
  }
}

function keyOf({ meshId, spaceId }: SpaceRef): string {
  return `${meshId}/${spaceId}`;
}

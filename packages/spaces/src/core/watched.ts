// What a session watches on one branch: ids, and prefixes of ids. Pure.

export class Watched {
  readonly ids: ReadonlySet<string>;
  readonly prefixes: readonly string[];

  constructor(ids: Iterable<string>, prefixes: Iterable<string>) {
    this.ids = new Set(ids);
    this.prefixes = withoutCovered(prefixes);
  }

  /** How much room it takes. */
  get size(): number {
    return this.ids.size + this.prefixes.length;
  }

  has(id: string): boolean {
    return this.ids.has(id) || this.#hasPrefixOf(id);
  }

  /** Ids that no prefix stands for. */
  idsAlone(): string[] {
    return [...this.ids].filter((id) => !this.#hasPrefixOf(id));
  }

  /** None of the prefixes begins with another one, so that only the last one that is not behind the id can be its own. */
  #hasPrefixOf(id: string): boolean {
    let from = 0;
    let to = this.prefixes.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((this.prefixes[middle] ?? "") <= id) from = middle + 1;
      else to = middle;
    }
    const nearest = this.prefixes[from - 1];
    return nearest !== undefined && id.startsWith(nearest);
  }
}

/** The shortest ones only, in order: each id is found under one prefix. */
function withoutCovered(prefixes: Iterable<string>): string[] {
  const kept: string[] = [];
  for (const prefix of [...new Set(prefixes)].sort()) {
    const last = kept.at(-1);
    if (last === undefined || !prefix.startsWith(last)) kept.push(prefix);
  }
  return kept;
}

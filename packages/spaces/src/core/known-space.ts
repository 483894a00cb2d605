// What a process remembers of a space between its commits: the present state of the entities that it wrote or read last,
// their latest writes, and branches. All of it is as of one seq. Every change of an entity or branch has a seq of its own, so that
// a space whose last seq is this one is as it is remembered, whoever commits to it. Pure, and bounded.
// Why: docs/decisions/0056.
import type { Footprint } from "@claudemesh/protocol/spaces/footprint";
import type { Branch } from "./branch-lineage.ts";
import type { EntityState } from "./entity-history.ts";
import type { SeenWrite } from "./stale-reads.ts";

type KnownEntity = {
  /** Undefined: not known. */
  readonly state: EntityState | undefined;
  /** Those of the branch itself with a seq above `since`. */
  readonly newest: Link | undefined;
  readonly since: number;
  readonly characters: number;
};

/** Newest first, as a chain: a commit adds to it without copying what was there. */
type Link = { readonly write: SeenWrite; readonly older: Link | undefined; readonly length: number };

/** What an accepted commit made of one entity. */
export type EntityChange = {
  readonly entityId: string;
  readonly state: EntityState;
  /** One for each operation on it, in their order. */
  readonly footprints: readonly Footprint[];
  /** How long its document is as text. */
  readonly characters: number;
};

const nothingKnown = -1;
/** So many are kept when there are twice as many. */
const writesKept = 64;
const entitiesMax = 1_024;
const charactersMax = 1_048_576;
const branchesMax = 64;

function keyOf(branch: string, entityId: string): string {
  return `${branch}\0${entityId}`;
}

export class KnownSpace {
  readonly #branches = new Map<string, Branch>();
  /** The one that was written or noted last stands last. */
  readonly #entities = new Map<string, KnownEntity>();
  #seq = nothingKnown;
  #characters = 0;

  get seq(): number {
    return this.#seq;
  }

  /** The same; undefined: nothing is known. */
  get knownSeq(): number | undefined {
    return this.#seq === nothingKnown ? undefined : this.#seq;
  }

  branch(name: string): Branch | undefined {
    return this.#branches.get(name);
  }

  entity(key: string): KnownEntity | undefined {
    return this.#entities.get(key);
  }

  /** After the transaction that the draft belongs to was committed, and never before. */
  keep(draft: KnownDraft): void {
    const { seq, base, baseSeq, branches, entities } = draft.contents();
    if (base !== this || baseSeq !== this.#seq) this.#clear();
    this.#seq = seq;
    if (this.#branches.size + branches.size > branchesMax) this.#branches.clear();
    for (const [name, branch] of branches) this.#branches.set(name, branch);
    for (const [key, entity] of entities) {
      this.#drop(key);
      this.#entities.set(key, entity);
      this.#characters += entity.characters;
    }
    for (const key of this.#entities.keys()) {
      if (this.#entities.size <= entitiesMax && this.#characters <= charactersMax) break;
      this.#drop(key);
    }
  }

  #drop(key: string): void {
    this.#characters -= this.#entities.get(key)?.characters ?? 0;
    this.#entities.delete(key);
  }

  #clear(): void {
    this.#branches.clear();
    this.#entities.clear();
    this.#characters = 0;
  }
}

/** The same inside one transaction, with what its commits have changed so far. Is thrown away with the transaction. */
export class KnownDraft {
  #base: KnownSpace | undefined;
  #seq: number;
  readonly #baseSeq: number;
  readonly #branches = new Map<string, Branch>();
  readonly #entities = new Map<string, KnownEntity>();

  constructor(base: KnownSpace) {
    this.#base = base;
    this.#seq = base.seq;
    this.#baseSeq = base.seq;
  }

  /** Under the space's lock, with its last seq: forgets everything where that is another one than is known here. */
  stand(lastSeq: number): void {
    if (this.#seq === lastSeq) return;
    this.forget();
    this.#seq = lastSeq;
  }

  forget(): void {
    this.#base = undefined;
    this.#seq = nothingKnown;
    this.#branches.clear();
    this.#entities.clear();
  }

  branch(name: string): Branch | undefined {
    return this.#branches.get(name) ?? this.#base?.branch(name);
  }

  noteBranch(branch: Branch): void {
    this.#branches.set(branch.name, branch);
  }

  /** As the branch shows it now. Undefined: not known, which says nothing about whether it exists. */
  state(branch: string, entityId: string): EntityState | undefined {
    return this.#find(branch, entityId)?.state;
  }

  /** The branch's own writes of the entity with a seq above `afterSeq`, newest first. Undefined: not known. */
  writes(branch: string, entityId: string, afterSeq: number): readonly SeenWrite[] | undefined {
    const known = this.#find(branch, entityId);
    if (known === undefined || known.since > afterSeq) return undefined;
    return newerThan(known.newest, afterSeq);
  }

  /** What the commit of that seq did to the entity, operation by operation. Undefined: not known. */
  layer(branch: string, entityId: string, seq: number): readonly Footprint[] | undefined {
    const known = this.#find(branch, entityId);
    if (known === undefined || known.since >= seq) return undefined;
    return newerThan(known.newest, seq - 1)
      .flatMap((write) => (write.seq === seq ? [write.footprint] : []))
      .reverse();
  }

  /** All of the branch's own writes of the entity with a seq above `since`, newest first, as the store has them now. */
  noteWrites(branch: string, entityId: string, since: number, writes: readonly SeenWrite[]): void {
    const { state, characters = 0 } = this.#find(branch, entityId) ?? {};
    const newest = writes.reduceRight<Link | undefined>((older, write) => prepend(write, older), undefined);
    this.#entities.set(keyOf(branch, entityId), { state, characters, ...shorten(newest, since) });
  }

  /** As the branch shows it now. */
  noteState(branch: string, entityId: string, state: EntityState, characters: number): void {
    const { newest, since = this.#seq } = this.#find(branch, entityId) ?? {};
    this.#entities.set(keyOf(branch, entityId), { state, newest, since, characters });
  }

  accepted(seq: number, branch: string, changes: readonly EntityChange[]): void {
    for (const { entityId, state, footprints, characters } of changes) {
      const key = keyOf(branch, entityId);
      const before = this.#entities.get(key) ?? this.#base?.entity(key);
      let newest = before?.newest;
      for (const footprint of footprints) newest = prepend({ seq, footprint }, newest);
      this.#entities.set(key, { state, characters, ...shorten(newest, before?.since ?? seq - 1) });
    }
    this.#seq = seq;
  }

  contents() {
    return {
      seq: this.#seq,
      base: this.#base,
      baseSeq: this.#baseSeq,
      branches: this.#branches,
      entities: this.#entities,
    };
  }

  #find(branch: string, entityId: string): KnownEntity | undefined {
    const key = keyOf(branch, entityId);
    return this.#entities.get(key) ?? this.#base?.entity(key);
  }
}

function prepend(write: SeenWrite, older: Link | undefined): Link {
  return { write, older, length: (older?.length ?? 0) + 1 };
}

function newerThan(newest: Link | undefined, afterSeq: number): SeenWrite[] {
  const writes: SeenWrite[] = [];
  for (let link = newest; link !== undefined && link.write.seq > afterSeq; link = link.older) writes.push(link.write);
  return writes;
}

/** Forgets the oldest commits whole: half of one would look like all of it. */
function shorten(newest: Link | undefined, since: number): Pick<KnownEntity, "newest" | "since"> {
  if (newest === undefined || newest.length <= 2 * writesKept) return { newest, since };
  const writes = newerThan(newest, since);
  const cut = writes[writesKept]?.seq ?? since;
  const kept = writes.filter(({ seq }) => seq > cut);
  return { newest: kept.reduceRight<Link | undefined>((older, write) => prepend(write, older), undefined), since: cut };
}

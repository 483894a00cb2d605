// The spaces cache: what one process keeps of a space between its commits, so that most commits are decided without reading
// documents and footprints again. It holds the present state of the entities that were written or read last, their latest
// writes, and branches.
//
// One number makes it safe. Every change of an entity or a branch has a seq of its own, so that the cache is right if and only
// if the space's last seq is the one at which it was filled (SPC-17). Sessions, verdicts and members change without a seq
// and are never kept here.
//
// A `SpaceCache` belongs to a space. It is either empty, or filled as of `seq`. A transaction never changes it: each works on a
// `SpaceCacheOverlay`, which answers from its own entries first and from the cache below them. The overlay is
//
//   unchecked   when it is made: its answers may serve as hints, and nothing is decided on them;
//   checked     when `checkSeq` has seen the last seq that was read under the space's lock. If that is another seq than the
//               cache's, another broker has committed: the overlay lets go of the cache and continues empty, as of that seq;
//   forgotten   after a branch was created or deleted, or writes were undone: every look-up misses until the next check.
//
// While it is checked, each accepted commit of the transaction adds what it changed and moves the overlay to its seq, so that
// the next commit of the same transaction sees it. After COMMIT the cache adopts the overlay. After a ROLLBACK the overlay is
// dropped and the cache is as it was. If the cache moved to another seq in the meantime, it is emptied before it adopts.
//
// Memory is bounded for each space by entities and characters, for each entity by writes, and by the number of spaces; what was
// used longest ago goes first.
// Why: docs/decisions/0056.
import type { Footprint } from "@claudemesh/protocol/spaces/footprint";
import type { Branch } from "../../core/branch-lineage.ts";
import type { EntityChange, EntityState } from "../../core/entity-history.ts";
import type { SeenWrite } from "../../core/stale-reads.ts";
import type { SpaceRef } from "../../ports/rows.ts";

type CachedEntity = {
  /** Undefined while only its writes are cached. */
  readonly state: EntityState | undefined;
  /** Those of the branch itself with a seq above `since`. */
  readonly newest: Link | undefined;
  readonly since: number;
  readonly characters: number;
};

/** Newest first, as a chain: a commit adds to it without copying what was there. */
type Link = { readonly write: SeenWrite; readonly older: Link | undefined; readonly length: number };

const emptySeq = -1;
/** So many are kept when there are twice as many. */
const writesKept = 64;
const entitiesMax = 1_024;
const charactersMax = 1_048_576;
const branchesMax = 64;
const spacesMax = 64;

function keyOf(branch: string, entityId: string): string {
  return `${branch}\0${entityId}`;
}

export class SpaceCache {
  readonly #branches = new Map<string, Branch>();
  /** The one that was written or added last stands last. */
  readonly #entities = new Map<string, CachedEntity>();
  #seq = emptySeq;
  #characters = 0;

  get seq(): number {
    return this.#seq;
  }

  get isEmpty(): boolean {
    return this.#seq === emptySeq;
  }

  branch(name: string): Branch | undefined {
    return this.#branches.get(name);
  }

  entity(key: string): CachedEntity | undefined {
    return this.#entities.get(key);
  }

  /** After the transaction that the overlay belongs to was committed, and never before. A second time does nothing. */
  adopt(overlay: SpaceCacheOverlay): void {
    if (overlay.isAdopted) return;
    overlay.isAdopted = true;
    const { seq, base, baseSeq, branches, entities } = overlay.contents();
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

/** Look-ups are like those of a map: undefined is a miss, and says nothing about what the store has. */
export class SpaceCacheOverlay {
  isAdopted = false;
  #base: SpaceCache | undefined;
  #seq: number;
  readonly #baseSeq: number;
  readonly #branches = new Map<string, Branch>();
  readonly #entities = new Map<string, CachedEntity>();

  constructor(base: SpaceCache) {
    this.#base = base;
    this.#seq = base.seq;
    this.#baseSeq = base.seq;
  }

  get seq(): number {
    return this.#seq;
  }

  /** With the space's last seq, under its lock. */
  checkSeq(lastSeq: number): void {
    if (this.#seq === lastSeq) return;
    this.forget();
    this.#seq = lastSeq;
  }

  forget(): void {
    this.#base = undefined;
    this.#seq = emptySeq;
    this.#branches.clear();
    this.#entities.clear();
  }

  branch(name: string): Branch | undefined {
    return this.#branches.get(name) ?? this.#base?.branch(name);
  }

  addBranch(branch: Branch): void {
    this.#branches.set(branch.name, branch);
  }

  /** As the branch shows it now. */
  state(branch: string, entityId: string): EntityState | undefined {
    return this.#find(branch, entityId)?.state;
  }

  /** The branch's own writes of the entity with a seq above `afterSeq`, newest first. */
  writes(branch: string, entityId: string, afterSeq: number): readonly SeenWrite[] | undefined {
    const entity = this.#find(branch, entityId);
    if (entity === undefined || entity.since > afterSeq) return undefined;
    return newerThan(entity.newest, afterSeq);
  }

  /** What the commit of that seq did to the entity, operation by operation. */
  layer(branch: string, entityId: string, seq: number): readonly Footprint[] | undefined {
    const writes = this.writes(branch, entityId, seq - 1);
    return writes?.flatMap((write) => (write.seq === seq ? [write.footprint] : [])).reverse();
  }

  /** All of the branch's own writes of the entity with a seq above `since`, newest first, as the store has them now. */
  addWrites(branch: string, entityId: string, since: number, writes: readonly SeenWrite[]): void {
    const { state, characters = 0 } = this.#find(branch, entityId) ?? {};
    this.#entities.set(keyOf(branch, entityId), { state, characters, ...shorten(chain(writes), since) });
  }

  /** As the branch shows it now. */
  addState(branch: string, entityId: string, state: EntityState, characters: number): void {
    const { newest, since = this.#seq } = this.#find(branch, entityId) ?? {};
    this.#entities.set(keyOf(branch, entityId), { state, newest, since, characters });
  }

  /** What an accepted commit made of its entities. */
  addCommit(seq: number, branch: string, changes: readonly EntityChange[]): void {
    for (const { entityId, state, footprints, characters } of changes) {
      const before = this.#find(branch, entityId);
      let newest = before?.newest;
      for (const footprint of footprints) newest = prepend({ seq, footprint }, newest);
      const writes = shorten(newest, before?.since ?? seq - 1);
      this.#entities.set(keyOf(branch, entityId), { state, characters, ...writes });
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

  #find(branch: string, entityId: string): CachedEntity | undefined {
    const key = keyOf(branch, entityId);
    return this.#entities.get(key) ?? this.#base?.entity(key);
  }
}

/** One entry for each of the spaces that were committed to last. */
export class SpaceCaches<Entry> {
  readonly #create: () => Entry;
  /** The one that was asked for last stands last. */
  readonly #spaces = new Map<string, Entry>();

  constructor(create: () => Entry) {
    this.#create = create;
  }

  forget({ meshId, spaceId }: SpaceRef): void {
    this.#spaces.delete(`${meshId}/${spaceId}`);
  }

  of({ meshId, spaceId }: SpaceRef): Entry {
    const key = `${meshId}/${spaceId}`;
    const entry = this.#spaces.get(key) ?? this.#create();
    this.#spaces.delete(key);
    this.#spaces.set(key, entry);
    const [oldest] = this.#spaces.keys();
    if (this.#spaces.size > spacesMax && oldest !== undefined) this.#spaces.delete(oldest);
    return entry;
  }
}

function prepend(write: SeenWrite, older: Link | undefined): Link {
  return { write, older, length: (older?.length ?? 0) + 1 };
}

function chain(newestFirst: readonly SeenWrite[]): Link | undefined {
  return newestFirst.reduceRight<Link | undefined>((older, write) => prepend(write, older), undefined);
}

function newerThan(newest: Link | undefined, afterSeq: number): SeenWrite[] {
  const writes: SeenWrite[] = [];
  for (let link = newest; link !== undefined && link.write.seq > afterSeq; link = link.older) writes.push(link.write);
  return writes;
}

/** Forgets the oldest commits whole: half of one would look like all of it. */
function shorten(newest: Link | undefined, since: number): Pick<CachedEntity, "newest" | "since"> {
  if (newest === undefined || newest.length <= 2 * writesKept) return { newest, since };
  const writes = newerThan(newest, since);
  const cut = writes[writesKept]?.seq ?? since;
  return { newest: chain(writes.filter(({ seq }) => seq > cut)), since: cut };
}

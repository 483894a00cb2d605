// The branches that this replica uses, each with its tiers and its watch set.
import type { BranchId, EntityId } from "@claudemesh/protocol/spaces/entity";
import { BranchTiers } from "../tiers/branch-tiers.ts";
import type { EntityTiers } from "../tiers/entity-tiers.ts";
import { VisibleChanges } from "../tiers/visible-changes.ts";
import { WatchSet } from "./watch-set.ts";

export class Branch {
  readonly tiers: BranchTiers;
  readonly watch: WatchSet;

  constructor(name: BranchId, seq: number, isSubscribed: (branch: BranchId, id: EntityId) => boolean) {
    this.tiers = new BranchTiers(name, seq);
    this.watch = new WatchSet(name, (id) => isSubscribed(name, id) || this.tiers.find(id)?.hasStack === true);
    this.tiers.isWatched = (id) => this.watch.isWatched(id);
  }

  get name(): BranchId {
    return this.tiers.name;
  }

  /**
   * What is known of an entity. Where a prefix covers the entity and is watched, an unknown entity is known to be
   * absent.
   */
  find(id: EntityId): EntityTiers | undefined {
    const existing = this.tiers.find(id);
    if (existing?.isLive === true || !this.watch.isLive(id)) return existing;
    this.tiers.goLive(id, new VisibleChanges(this.name, () => false));
    return this.tiers.find(id);
  }

  /** Of these, forgets the entities that are not watched any more. */
  forgetUnwatched(ids: readonly EntityId[]): void {
    const changes = new VisibleChanges(this.name, () => false);
    for (const id of ids) {
      if (this.tiers.find(id)?.isLive === true && !this.watch.isWatched(id)) this.tiers.forget(id, changes);
    }
  }
}

export class Branches {
  readonly #branches = new Map<BranchId, Branch>();
  readonly #isSubscribed: (branch: BranchId, id: EntityId) => boolean;
  /** The highest seq that the server is known to have reached. */
  #knownSeq = 0;

  constructor(isSubscribed: (branch: BranchId, id: EntityId) => boolean) {
    this.#isSubscribed = isSubscribed;
  }

  noteSeq(seq: number): void {
    this.#knownSeq = Math.max(this.#knownSeq, seq);
  }

  get knownSeq(): number {
    return this.#knownSeq;
  }

  get(name: BranchId): Branch {
    let branch = this.#branches.get(name);
    if (branch === undefined) {
      branch = new Branch(name, this.#knownSeq, this.#isSubscribed);
      this.#branches.set(name, branch);
    }
    return branch;
  }

  find(name: BranchId): Branch | undefined {
    return this.#branches.get(name);
  }

  all(): Branch[] {
    return [...this.#branches.values()];
  }

  /** The seq that a resumed session reports as seen: no branch lacks anything up to it. */
  seenSeq(): number {
    return this.all().reduce((seq, { tiers }) => Math.min(seq, tiers.seq), this.#knownSeq);
  }
}

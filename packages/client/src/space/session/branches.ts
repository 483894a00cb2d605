// The branches that this replica looks at, each with its tiers and its watch set.
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
    this.tiers.isTold = (id) => this.watch.isTold(id);
  }

  get name(): BranchId {
    return this.tiers.name;
  }

  /** What is known of an entity; where everything with its prefix is told of, nothing is known to be there. */
  find(id: EntityId): EntityTiers | undefined {
    const known = this.tiers.find(id);
    if (known?.isLive === true || !this.watch.isLive(id)) return known;
    this.tiers.goLive(id, new VisibleChanges(this.name, () => false));
    return this.tiers.find(id);
  }

  /** Of these, forgets what is no longer told of. */
  forgetUntold(ids: readonly EntityId[]): void {
    const changes = new VisibleChanges(this.name, () => false);
    for (const id of ids) {
      if (this.tiers.find(id)?.isLive === true && !this.watch.isTold(id)) this.tiers.forget(id, changes);
    }
  }
}

export class Branches {
  readonly #branches = new Map<BranchId, Branch>();
  readonly #isSubscribed: (branch: BranchId, id: EntityId) => boolean;
  /** No lower than any seq that the server is known to have reached. */
  #knownSeq = 0;

  constructor(isSubscribed: (branch: BranchId, id: EntityId) => boolean) {
    this.#isSubscribed = isSubscribed;
  }

  heard(seq: number): void {
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

  /** What a resumed session reports as seen: nothing that any branch still lacks. */
  seenSeq(): number {
    return this.all().reduce((seq, { tiers }) => Math.min(seq, tiers.seq), this.#knownSeq);
  }
}

// The order in which frames, loaded entities and verdicts take effect (SPC-15). A frame that may contain own work waits
// for the verdicts of that work and takes effect with them in one step, so that no change is visible twice or missing.
// A verdict takes effect once this connection has caught up, so that the state that explains it is there. No I/O.
// Why: docs/decisions/0028.
import type { BranchId, EntityId } from "@claudemesh/protocol/spaces/entity";
import { ownError, type SpaceError } from "../space-errors.ts";
import type { EntityRecord, SyncFrame } from "../sync-frame.ts";
import type { BranchTiers } from "../tiers/branch-tiers.ts";
import type { Layer } from "../tiers/layer.ts";
import { type Notification, VisibleChanges } from "../tiers/visible-changes.ts";
import type { Outbox } from "./outbox.ts";
import type { LoadedRound, WatchSet } from "./watch-set.ts";

export type Verdict =
  | {
      readonly type: "accepted";
      readonly seq: number;
      readonly resolvedPendingReads: readonly { readonly localSeq: number; readonly seq: number }[];
      readonly replayed: boolean;
    }
  | { readonly type: "rejected"; readonly error: SpaceError };

export type Settlement = { readonly localSeq: number; readonly verdict: Verdict };

/** In the order of notification: first what became visible, then the verdicts of the commits. */
export type Integrated = {
  readonly notifications: readonly Notification[];
  readonly settlements: readonly Settlement[];
};

type Item = {
  readonly branch: BranchId;
  /** Own work up to this localSeq may be included. */
  readonly caughtUpLocalSeq: number;
  readonly records: readonly EntityRecord[];
  readonly removes: readonly EntityId[];
  readonly toSeq: number;
  readonly round?: LoadedRound;
};

export type IntegrationParts = {
  readonly outbox: Outbox;
  /** Undefined for a branch that this replica does not use. */
  readonly branchOf: (name: BranchId) => { readonly tiers: BranchTiers; readonly watch: WatchSet } | undefined;
  readonly isObserved: (branch: BranchId, id: EntityId) => boolean;
};

export class Integration {
  readonly #parts: IntegrationParts;
  #inbox: Item[] = [];
  /** Frames that say themselves that more is to come. */
  readonly #partial = new Map<BranchId, readonly EntityRecord[]>();
  readonly #verdicts = new Map<number, Verdict>();
  /** True while a new connection has not yet delivered everything that was missed. */
  isCatchingUp = false;
  #hold: "free" | "held" | "held_up" = "free";

  constructor(parts: IntegrationParts) {
    this.#parts = parts;
  }

  get isHeld(): boolean {
    return this.#hold !== "free";
  }

  /** SPC-14: while a transaction is being built, nothing takes effect. */
  hold(): void {
    this.#hold = "held";
  }

  /** True if something had to wait. */
  release(): boolean {
    const wasHeldUp = this.#hold === "held_up";
    this.#hold = "free";
    return wasHeldUp;
  }

  /**
   * Changes that came in several frames take effect with the last one, which alone advances the seq, because a part of
   * them is no consistent state.
   */
  receive(frame: SyncFrame): void {
    const { branch, caughtUpLocalSeq, removes, fromSeq, toSeq } = frame;
    const records = [...(this.#partial.get(branch) ?? []), ...frame.upserts];
    if (toSeq <= fromSeq && removes.length === 0 && frame.upserts.length > 0) {
      this.#partial.set(branch, records);
      return;
    }
    this.#partial.delete(branch);
    this.#inbox.push({ branch, caughtUpLocalSeq, records, removes, toSeq });
  }

  /** The loaded state may already contain own work on these entities; only the verdict of that work tells. */
  receiveLoaded(branch: BranchId, round: LoadedRound): void {
    const tiers = this.#parts.branchOf(branch)?.tiers;
    const { ids, records, seq: toSeq } = round;
    const touched = [...ids, ...records.map(({ id }) => id)];
    const undecided = touched.flatMap((id) => tiers?.find(id)?.undecided() ?? []);
    const caughtUpLocalSeq = undecided.reduce((a, b) => Math.max(a, b), 0);
    this.#inbox.push({ branch, caughtUpLocalSeq, records, removes: [], toSeq, round });
  }

  receiveVerdict(localSeq: number, verdict: Verdict): void {
    if (this.#parts.outbox.find(localSeq) === undefined || this.#verdicts.has(localSeq)) return;
    this.#verdicts.set(localSeq, verdict);
    if (verdict.type === "rejected") for (const layer of this.#withDependents(localSeq)) layer.isDoomed = true;
  }

  isDecided(localSeq: number): boolean {
    return this.#verdicts.has(localSeq) || this.#parts.outbox.find(localSeq)?.isDoomed === true;
  }

  /** Frames of an ended connection that took no effect yet are sent again on the next one. */
  dropInbox(): void {
    this.#inbox = [];
    this.#partial.clear();
  }

  /** Applies everything that can take effect. */
  advance(): Integrated {
    const notifications: Notification[] = [];
    const settlements: Settlement[] = [];
    for (let step = this.#next(); step !== undefined; step = this.#next()) {
      notifications.push(...step.notifications);
      settlements.push(...step.settlements);
    }
    return { notifications, settlements };
  }

  /** Takes all own work back, because the session is lost. */
  discardAll(error: (localSeq: number) => SpaceError): Integrated {
    const settlements = this.#parts.outbox
      .layers()
      .map(({ localSeq }): Settlement => ({ localSeq, verdict: { type: "rejected", error: error(localSeq) } }));
    const changes = new ChangesByBranch(this.#parts);
    this.#removeLayers(this.#parts.outbox.layers(), changes);
    this.#verdicts.clear();
    this.dropInbox();
    return { notifications: changes.notifications(), settlements };
  }

  #next(): Integrated | undefined {
    if (this.isHeld) {
      this.#hold = "held_up";
      return undefined;
    }
    const [item] = this.#inbox;
    const changes = new ChangesByBranch(this.#parts);
    if (item !== undefined) {
      if (this.#isWaiting(item)) return undefined;
      this.#inbox.shift();
      const settlements = this.#apply(this.#decidedUpTo(item.caughtUpLocalSeq), changes);
      this.#integrate(item, changes.of(item.branch));
      return { notifications: changes.notifications(), settlements };
    }
    const due = this.isCatchingUp ? [] : this.#decidedUpTo(Number.POSITIVE_INFINITY);
    if (due.length === 0) return undefined;
    const settlements = this.#apply(due, changes);
    return { notifications: changes.notifications(), settlements };
  }

  #isWaiting({ caughtUpLocalSeq }: Item): boolean {
    return this.#parts.outbox.hasUndecidedUpTo(caughtUpLocalSeq, (localSeq) => this.isDecided(localSeq));
  }

  /** In the order of their localSeq, up to the first gap. */
  #decidedUpTo(localSeq: number): Settlement[] {
    const decided: Settlement[] = [];
    for (const layer of this.#parts.outbox.layers()) {
      if (layer.localSeq > localSeq || !this.isDecided(layer.localSeq)) break;
      const verdict = this.#verdicts.get(layer.localSeq) ?? dependencyRejected(layer);
      decided.push({ localSeq: layer.localSeq, verdict });
    }
    return decided;
  }

  #apply(decided: readonly Settlement[], changes: ChangesByBranch): Settlement[] {
    const settlements: Settlement[] = [];
    for (const settlement of decided) {
      const { localSeq, verdict } = settlement;
      const layer = this.#parts.outbox.find(localSeq);
      if (layer === undefined) continue;
      if (verdict.type === "accepted") {
        this.#forget(localSeq);
        this.#parts.branchOf(layer.branch)?.tiers.accept(layer, verdict.seq, changes.of(layer.branch));
        settlements.push(settlement);
        continue;
      }
      const [, ...dependents] = this.#withDependents(localSeq);
      settlements.push(settlement);
      for (const each of dependents) settlements.push({ localSeq: each.localSeq, verdict: dependencyRejected(each) });
      this.#removeLayers([layer, ...dependents], changes);
    }
    return settlements;
  }

  #integrate(item: Item, changes: VisibleChanges): void {
    const branch = this.#parts.branchOf(item.branch);
    if (branch === undefined) return;
    const { tiers, watch } = branch;
    for (const record of item.records) {
      if (watch.isWatched(record.id)) tiers.confirm(record, changes);
    }
    if (item.round !== undefined) this.#goLive(tiers, watch, item.round, changes);
    for (const { id } of item.records) if (watch.isLive(id)) tiers.goLive(id, changes);
    for (const id of item.removes) {
      tiers.forget(id, changes);
      watch.lapse(id);
    }
    tiers.advanceTo(item.toSeq, changes);
    tiers.settle(changes);
  }

  #goLive(tiers: BranchTiers, watch: WatchSet, round: LoadedRound, changes: VisibleChanges): void {
    watch.markLive(round);
    for (const id of round.ids) if (watch.isLive(id)) tiers.goLive(id, changes);
    if (round.prefixes.length === 0) return;
    for (const { id } of [...tiers.entities()]) if (watch.isLive(id)) tiers.goLive(id, changes);
  }

  #removeLayers(layers: readonly Layer[], changes: ChangesByBranch): void {
    for (const layer of layers) {
      this.#forget(layer.localSeq);
      this.#parts.branchOf(layer.branch)?.tiers.remove([layer], changes.of(layer.branch));
    }
  }

  #forget(localSeq: number): void {
    this.#parts.outbox.delete(localSeq);
    this.#verdicts.delete(localSeq);
  }

  /** The layer and all layers that rest on it, directly or not; a layer only rests on lower ones. */
  #withDependents(localSeq: number): Layer[] {
    const dead = new Set([localSeq]);
    const dependents: Layer[] = [];
    for (const layer of this.#parts.outbox.layers()) {
      const isDead = layer.localSeq === localSeq || [...layer.restsOn].some((each) => dead.has(each));
      if (!isDead) continue;
      dead.add(layer.localSeq);
      dependents.push(layer);
    }
    return dependents;
  }
}

function dependencyRejected({ restsOn }: Layer): Verdict {
  return {
    type: "rejected",
    error: ownError("DependencyRejectedError", undefined, { localSeq: Math.min(...restsOn) }),
  };
}

class ChangesByBranch {
  readonly #parts: IntegrationParts;
  readonly #changes = new Map<BranchId, VisibleChanges>();

  constructor(parts: IntegrationParts) {
    this.#parts = parts;
  }

  of(branch: BranchId): VisibleChanges {
    let changes = this.#changes.get(branch);
    if (changes === undefined) {
      changes = new VisibleChanges(branch, this.#parts.isObserved);
      this.#changes.set(branch, changes);
    }
    return changes;
  }

  notifications(): Notification[] {
    return [...this.#changes.values()].flatMap((changes) => changes.notifications());
  }
}

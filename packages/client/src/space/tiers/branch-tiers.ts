// One branch as this replica knows it: its entities, the seq up to which changes are integrated, and the layers over
// them. watch-set.ts says which entities are watched, and integration.ts orders the events.
import type { BranchId, EntityId } from "@claudemesh/protocol/spaces/entity";
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import type { EntityRecord } from "../sync-frame.ts";
import { EntityTiers } from "./entity-tiers.ts";
import type { Layer } from "./layer.ts";
import type { VisibleChanges } from "./visible-changes.ts";

export class BranchTiers {
  readonly name: BranchId;
  /** Every change of a live entity is integrated up to this seq. */
  seq: number;
  readonly #entities = new Map<EntityId, EntityTiers>();
  /** Accepted layers that are still in a stack because confirmed state has not reached them everywhere. */
  readonly #accepted = new Set<Layer>();

  constructor(name: BranchId, seq: number) {
    this.name = name;
    this.seq = seq;
  }

  find(id: EntityId): EntityTiers | undefined {
    return this.#entities.get(id);
  }

  entity(id: EntityId): EntityTiers {
    let entity = this.#entities.get(id);
    if (entity === undefined) {
      entity = new EntityTiers(id);
      this.#entities.set(id, entity);
    }
    return entity;
  }

  entities(): IterableIterator<EntityTiers> {
    return this.#entities.values();
  }

  /** Puts a layer on all the entities that it writes, or on none. */
  push(layer: Layer): void {
    const pushed: EntityTiers[] = [];
    try {
      for (const [id, operations] of byEntity(layer.operations)) {
        const entity = this.entity(id);
        entity.push(layer, operations, this.seq);
        pushed.push(entity);
      }
    } catch (error) {
      for (const entity of pushed) entity.drop((each) => each === layer);
      throw error;
    }
  }

  /** Removes layers, as if they had never been there. */
  remove(layers: readonly Layer[], changes: VisibleChanges): void {
    const gone = new Set(layers);
    for (const id of new Set(layers.flatMap(({ operations }) => operations.map((operation) => operation.id)))) {
      const entity = this.#entities.get(id);
      if (entity === undefined) continue;
      changes.note(entity, "revert");
      entity.drop((layer) => gone.has(layer));
      this.forgetIfUnused(entity);
    }
  }

  accept(layer: Layer, seq: number, changes: VisibleChanges): void {
    layer.acceptedSeq = seq;
    this.#accepted.add(layer);
    this.settle(changes);
  }

  /** The session in which these were numbered is over: a commit of another session could not name them as its basis. */
  disownAccepted(): void {
    for (const layer of this.#accepted) layer.isDisowned = true;
  }

  confirm(record: EntityRecord, changes: VisibleChanges): void {
    const entity = this.entity(record.id);
    changes.note(entity, "integrate");
    entity.confirm(record.seq, record.document);
  }

  goLive(id: EntityId, changes: VisibleChanges): void {
    const entity = this.entity(id);
    changes.note(entity, "integrate");
    entity.goLive();
  }

  /** The entity is not watched any more: its known state becomes outdated, so it is dropped. */
  forget(id: EntityId, changes: VisibleChanges): void {
    const entity = this.#entities.get(id);
    if (entity === undefined) return;
    changes.note(entity, "integrate");
    entity.forgetBase();
    this.forgetIfUnused(entity);
  }

  advanceTo(seq: number, changes: VisibleChanges): void {
    if (seq <= this.seq) return;
    this.seq = seq;
    this.settle(changes);
  }

  /**
   * Removes accepted layers from the stacks whose confirmed state includes them by now, and from entities that are not
   * watched.
   */
  settle(changes: VisibleChanges): void {
    for (const layer of this.#accepted) {
      const seq = layer.acceptedSeq ?? 0;
      const ids = new Set(layer.operations.map(({ id }) => id));
      const isKept = [...ids].map((id) => this.#settleEntity(id, layer, seq, changes)).includes(true);
      if (!isKept) this.#accepted.delete(layer);
    }
  }

  #settleEntity(id: EntityId, layer: Layer, seq: number, changes: VisibleChanges): boolean {
    const entity = this.#entities.get(id);
    if (entity === undefined) return false;
    if (!this.#isIntegrated(entity, seq)) return true;
    changes.note(entity, "integrate");
    entity.drop((each) => each === layer);
    this.forgetIfUnused(entity);
    return false;
  }

  #isIntegrated(entity: EntityTiers, seq: number): boolean {
    if (entity.isLive) return this.seq >= seq;
    if (entity.confirmedSeq >= seq) return true;
    // Later work may rest on the stack, and nothing else says what is under it.
    return !this.isWatched(entity.id) && entity.undecided().length === 0;
  }

  /** Whether changes of an entity are received, or will be once it is loaded. Set by the watch set. */
  isWatched: (id: EntityId) => boolean = () => false;

  forgetIfUnused(entity: EntityTiers): void {
    if (!entity.isLive && !entity.hasStack && !this.isWatched(entity.id)) this.#entities.delete(entity.id);
  }
}

function byEntity(operations: readonly Operation[]): Map<EntityId, Operation[]> {
  const grouped = new Map<EntityId, Operation[]>();
  for (const operation of operations) {
    const group = grouped.get(operation.id);
    if (group === undefined) grouped.set(operation.id, [operation]);
    else group.push(operation);
  }
  return grouped;
}

// Collects how a step changes visible documents: the state of each entity before the step against the one after it.
// Intermediate states are never reported.
import type { BranchId, EntityDocument, EntityId } from "@claudemesh/protocol/spaces/entity";
import { fabricEqual } from "@claudemesh/protocol/spaces/fabric-value";
import type { EntityTiers, Visible } from "./entity-tiers.ts";

export type NotificationCause = "commit" | "revert" | "integrate";

export type Notification = {
  readonly branch: BranchId;
  readonly id: EntityId;
  /** Undefined where the entity is absent, deleted, or not known any more. */
  readonly document: EntityDocument | undefined;
  readonly cause: NotificationCause;
};

export class VisibleChanges {
  readonly #branch: BranchId;
  readonly #isObserved: (branch: BranchId, id: EntityId) => boolean;
  readonly #before = new Map<EntityTiers, { readonly visible: Visible; cause: NotificationCause }>();

  constructor(branch: BranchId, isObserved: (branch: BranchId, id: EntityId) => boolean) {
    this.#branch = branch;
    this.#isObserved = isObserved;
  }

  /**
   * Must be called before the entity is changed. A step that takes own work back is a revert, whatever else it does.
   */
  note(entity: EntityTiers, cause: NotificationCause): void {
    const earlier = this.#before.get(entity);
    if (earlier === undefined) this.#before.set(entity, { visible: entity.visible, cause });
    else if (cause === "revert") earlier.cause = cause;
  }

  /** Reverts first, because the state that own work was removed from is the older one. */
  notifications(): Notification[] {
    const changed: Notification[] = [];
    for (const [entity, { visible, cause }] of this.#before) {
      if (!this.#isObserved(this.#branch, entity.id) || fabricEqual(visible.document, entity.visible.document))
        continue;
      changed.push({ branch: this.#branch, id: entity.id, document: entity.visible.document, cause });
    }
    return [...changed.filter(isRevert), ...changed.filter((each) => !isRevert(each))];
  }
}

function isRevert({ cause }: Notification): boolean {
  return cause === "revert";
}

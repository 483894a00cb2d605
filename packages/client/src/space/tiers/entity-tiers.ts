// One entity on one branch: its confirmed document, the stack of unconfirmed operations over it, and the visible
// document that results. A new base replays the operations, never their results. The cost depends on this entity alone.
import { applyWithFootprint } from "@claudemesh/protocol/spaces/apply";
import type { EntityDocument, EntityId } from "@claudemesh/protocol/spaces/entity";
import type { Footprint } from "@claudemesh/protocol/spaces/footprint";
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import { PatchFailure } from "@claudemesh/protocol/spaces/patch-failure";
import type { StackLayer } from "@claudemesh/protocol/spaces/read-recording";
import type { Layer } from "./layer.ts";

/** Undefined where the state was never received, which is different from an absent entity. */
type Base = { readonly seq: number; readonly document: EntityDocument | undefined } | undefined;

/** The visible document. `known: false`: this replica has not received it. */
export type Visible =
  | { readonly known: true; readonly document: EntityDocument | undefined }
  | { readonly known: false; readonly document?: undefined };

type Stacked = {
  readonly layer: Layer;
  readonly operations: readonly Operation[];
  /** Undefined where the operations do not fit the state under them now; the server will decide. */
  footprints: readonly Footprint[] | undefined;
};

const unknown: Visible = { known: false };

export class EntityTiers {
  readonly id: EntityId;
  /** Every change is received, so that the base is as of the branch's seq. */
  isLive = false;
  #base: Base;
  #stack: Stacked[] = [];
  #visible: Visible = unknown;
  /** The branch's seq when the first layer of the stack was put on an unknown base. */
  #stackedAtSeq = 0;

  constructor(id: EntityId) {
    this.id = id;
  }

  get visible(): Visible {
    return this.#visible;
  }

  get hasStack(): boolean {
    return this.#stack.length > 0;
  }

  /** The seq of the last confirmed write; 0 where there was none or it is unknown. */
  get confirmedSeq(): number {
    return this.#base?.seq ?? 0;
  }

  /**
   * Whether a transaction may read it: the visible document is known, its operations fit, a commit can name its basis,
   * and it is not about to be taken back.
   */
  get isReadable(): boolean {
    if (!this.#visible.known || !(this.isLive || this.#restsOnItself)) return false;
    return this.#stack.every(
      ({ layer, footprints }) => footprints !== undefined && layer.isDoomed !== true && layer.isDisowned !== true,
    );
  }

  /**
   * The stack begins with a write of the whole document, so the visible document does not depend on what is under it.
   */
  get #restsOnItself(): boolean {
    const [first] = this.#stack;
    return first !== undefined && first.operations[0]?.op !== "patch";
  }

  /**
   * The confirmed seq under the stack, given the branch's: the seq of a read of this entity. SPC-3: without a live base
   * it is the seq before the stack began, so that every later foreign write counts.
   */
  basisSeq(branchSeq: number): number {
    return this.isLive ? branchSeq : this.#stackedAtSeq;
  }

  /** The localSeqs of its layers without a verdict. */
  undecided(): number[] {
    return this.#stack.filter(({ layer }) => layer.acceptedSeq === undefined).map(({ layer }) => layer.localSeq);
  }

  layers(): StackLayer[] {
    return this.#stack.map(({ layer, footprints }) => ({ localSeq: layer.localSeq, footprints: footprints ?? [] }));
  }

  /** Puts operations of a new layer on top. Throws PatchFailure, and changes nothing, where they do not fit. */
  push(layer: Layer, operations: readonly Operation[], branchSeq: number): void {
    if (!this.hasStack) this.#stackedAtSeq = branchSeq;
    const applied = applyAll(this.#visible, operations);
    if (applied instanceof PatchFailure) throw applied;
    this.#stack.push({ layer, operations, footprints: applied.footprints });
    this.#visible = applied.visible;
  }

  /** Removes layers from the stack. */
  drop(isDropped: (layer: Layer) => boolean): void {
    const kept = this.#stack.filter(({ layer }) => !isDropped(layer));
    if (kept.length === this.#stack.length) return;
    this.#stack = kept;
    this.#replay();
  }

  /** A confirmed state; it counts if it is newer than the known one. */
  confirm(seq: number, document: EntityDocument | undefined): void {
    if (this.#base !== undefined && this.#base.seq >= seq) return;
    this.#base = { seq, document };
    this.#replay();
  }

  /** Everything up to the branch's seq has been received, so an entity that was not received does not exist. */
  goLive(): void {
    this.isLive = true;
    if (this.#base === undefined) this.confirm(0, undefined);
  }

  /** Changes of the entity are not received any more, so its confirmed state becomes outdated. */
  forgetBase(): void {
    this.isLive = false;
    this.#base = undefined;
    this.#stackedAtSeq = 0;
    this.#replay();
  }

  #replay(): void {
    let visible: Visible = this.#base === undefined ? unknown : { known: true, document: this.#base.document };
    for (const stacked of this.#stack) {
      const applied = applyAll(visible, stacked.operations);
      stacked.footprints = applied instanceof PatchFailure ? undefined : applied.footprints;
      if (!(applied instanceof PatchFailure)) visible = applied.visible;
    }
    this.#visible = visible;
  }
}

type AppliedAll = { readonly visible: Visible; readonly footprints: readonly Footprint[] };

/** Applies all operations of a layer or none of them. */
function applyAll(under: Visible, operations: readonly Operation[]): AppliedAll | PatchFailure {
  let visible = under;
  const footprints: Footprint[] = [];
  for (const operation of operations) {
    if (!visible.known && operation.op === "patch") return nothingUnder(operation);
    try {
      const { document, footprint } = applyWithFootprint(visible.document, operation);
      visible = { known: true, document };
      footprints.push(footprint);
    } catch (error) {
      if (error instanceof PatchFailure) return error;
      throw error;
    }
  }
  return { visible, footprints };
}

function nothingUnder(operation: Extract<Operation, { op: "patch" }>): PatchFailure {
  const [{ op, path } = { op: "add" as const, path: "" }] = operation.patches;
  return new PatchFailure({ patchIndex: 0, op, path, reason: "missing" });
}

// Where an operation wrote: what the engine stores with every revision and compares with what others read. What a single
// patch leaves behind is in touch.ts.
// Why: docs/decisions/0020.
import { applyWithFootprint } from "./apply.ts";
import type { EntityDocument } from "./entity.ts";
import type { Operation } from "./operations.ts";
import { type Footprint, type PathRead, touchOverlaps } from "./touch.ts";

export type { Footprint, PathRead } from "./touch.ts";

/** Throws PatchFailure as applyOperation does. Who needs the document too calls applyWithFootprint. */
export function footprintOf(operation: Operation, before: EntityDocument | undefined): Footprint {
  return applyWithFootprint(before, operation).footprint;
}

/** SPC-2: true whenever the write may have changed what the read saw. */
export function footprintOverlaps(footprint: Footprint, read: PathRead): boolean {
  return footprint.some((touch) => touchOverlaps(touch, read));
}

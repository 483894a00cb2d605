// Where an operation wrote: the engine stores this with every revision and compares it with what others read. touch.ts
// has the trace of a single patch.
// Why: docs/decisions/0020.
import { applyWithFootprint } from "./apply.ts";
import type { EntityDocument } from "./entity.ts";
import type { Operation } from "./operations.ts";
import { type Footprint, type PathRead, touchOverlaps } from "./touch.ts";

export type { Footprint, PathRead } from "./touch.ts";

/** Throws PatchFailure as applyOperation does. Callers that also need the document call applyWithFootprint. */
export function footprintOf(operation: Operation, before: EntityDocument | undefined): Footprint {
  return applyWithFootprint(before, operation).footprint;
}

/** SPC-2: true whenever the write may have changed what the read saw. */
export function footprintOverlaps(footprint: Footprint, read: PathRead): boolean {
  return footprint.some((touch) => touchOverlaps(touch, read));
}

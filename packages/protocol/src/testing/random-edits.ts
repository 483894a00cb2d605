// Random documents, operations and reads from one seed, over so few keys that they often meet. Some keys are an index
// in an array and a key in an object. For tests only.
import { applyWithFootprint } from "../spaces/apply.ts";
import type { EntityDocument } from "../spaces/entity.ts";
import type { FabricValue } from "../spaces/fabric-value.ts";
import type { Operation, PatchOp } from "../spaces/operations.ts";
import { PatchFailure } from "../spaces/patch-failure.ts";
import { formatPointer } from "../spaces/pointer.ts";
import type { Footprint, PathRead } from "../spaces/touch.ts";

/** A whole number from 0 to below `below`. */
export type Pick = (below: number) => number;

export const entityId = "task:1";
const keys = ["a", "b", "0", "1", "2", "-"] as const;

/** Mulberry32: short, and the same on every machine. */
export function seededPick(seed: number): Pick {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

function oneOf<T>(pick: Pick, items: readonly T[]): T {
  return items[pick(items.length)] as T;
}

/** Leaves nearly always differ from one another, so that one value does not pass for another by chance. */
function randomValue(pick: Pick, depth = 3): FabricValue {
  const kind = depth === 0 ? 0 : pick(5);
  if (kind <= 1) return pick(12) === 0 ? undefined : pick(1_000_000);
  if (kind <= 3) return Array.from({ length: pick(4) }, () => randomValue(pick, depth - 1));
  return randomObject(pick, depth - 1);
}

function randomObject(pick: Pick, depth: number): EntityDocument {
  return Object.fromEntries(Array.from({ length: 1 + pick(3) }, () => [oneOf(pick, keys), randomValue(pick, depth)]));
}

export function randomDocument(pick: Pick): EntityDocument | undefined {
  return pick(10) === 0 ? undefined : randomObject(pick, 3);
}

/** Mostly a path at which the document has a value, sometimes with one more key, sometimes any path. */
export function randomPath(pick: Pick, document: EntityDocument | undefined): string[] {
  if (pick(6) === 0) return Array.from({ length: pick(4) }, () => oneOf(pick, keys));
  const path: string[] = [];
  let value: FabricValue = document;
  while (typeof value === "object" && value !== null && pick(5) > 0) {
    const container = value as { readonly [key: string]: FabricValue };
    const present = Object.keys(container);
    if (present.length === 0) break;
    const key = oneOf(pick, present);
    path.push(key);
    value = container[key];
  }
  return pick(4) === 0 ? [...path, oneOf(pick, keys)] : path;
}

export function randomRead(pick: Pick, document: EntityDocument | undefined): PathRead {
  const path = randomPath(pick, document);
  return pick(3) === 0 ? { path, shallow: true } : { path };
}

export function randomPatch(pick: Pick, document: EntityDocument | undefined): PatchOp {
  const path = formatPointer(randomPath(pick, document));
  switch (pick(8)) {
    case 0:
    case 1:
      return { op: "add", path, value: randomValue(pick, 2) };
    case 2:
    case 3:
      return { op: "replace", path, value: randomValue(pick, 2) };
    case 4:
      return { op: "remove", path };
    case 5:
    case 6:
      return { op: "move", from: formatPointer(randomPath(pick, document)), path };
    default: {
      const add = Array.from({ length: pick(3) }, () => randomValue(pick, 1));
      return { op: "splice", path, index: pick(3), remove: pick(3), add };
    }
  }
}

export type Edited = { readonly document: EntityDocument | undefined; readonly footprint: Footprint };

/** Undefined where the operation does not fit the document. */
export function applyIfFits(document: EntityDocument | undefined, operation: Operation): Edited | undefined {
  try {
    return applyWithFootprint(document, operation);
  } catch (error) {
    if (error instanceof PatchFailure) return undefined;
    throw error;
  }
}

/** An operation that fits, if a few tries find one: sometimes the whole document, mostly one or two patches. */
export function randomFittingOperation(
  pick: Pick,
  document: EntityDocument | undefined,
): (Edited & { readonly operation: Operation }) | undefined {
  const kind = pick(40);
  if (kind === 0) return fitting(document, { op: "delete", id: entityId });
  if (kind === 1) return fitting(document, { op: "set", id: entityId, value: randomObject(pick, 3) });
  for (let tries = 0; tries < 12; tries += 1) {
    const first = fitting(document, { op: "patch", id: entityId, patches: [randomPatch(pick, document)] });
    if (first === undefined) continue;
    const patches = [...first.operation.patches, randomPatch(pick, first.document)];
    return (pick(2) === 0 ? fitting(document, { op: "patch", id: entityId, patches }) : undefined) ?? first;
  }
  return undefined;
}

function fitting<T extends Operation>(
  document: EntityDocument | undefined,
  operation: T,
): (Edited & { readonly operation: T }) | undefined {
  const edited = applyIfFits(document, operation);
  return edited === undefined ? undefined : { ...edited, operation };
}

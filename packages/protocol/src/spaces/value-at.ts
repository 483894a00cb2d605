// What a read sees: the value at a path of a document, and the keys only for a shallow one.
import type { EntityDocument, ReadPath } from "./entity.ts";
import { type FabricValue, isFabricArray, isFabricObject } from "./fabric-value.ts";
import { isIndex } from "./pointer.ts";

/** `undefined` is a value, so that nothing being there is told apart from it. */
export type ValueAt = { readonly exists: true; readonly value: FabricValue } | { readonly exists: false };

const absent: ValueAt = { exists: false };

export function valueAt(document: EntityDocument | undefined, path: ReadPath): ValueAt {
  if (document === undefined) return absent;
  let value: FabricValue = document;
  for (const key of path) {
    if (isFabricArray(value)) {
      if (!isIndex(key) || Number(key) >= value.length) return absent;
      value = value[Number(key)];
    } else if (isFabricObject(value)) {
      if (!Object.hasOwn(value, key)) return absent;
      value = value[key];
    } else {
      return absent;
    }
  }
  return { exists: true, value };
}

/** All that a shallow read may look at: an object's keys, an array's length, a leaf. */
export function shallowAt(document: EntityDocument | undefined, path: ReadPath): ValueAt {
  const found = valueAt(document, path);
  if (!found.exists) return found;
  if (isFabricArray(found.value)) return { exists: true, value: { length: found.value.length } };
  if (isFabricObject(found.value)) return { exists: true, value: Object.keys(found.value).sort() };
  return found;
}

// What a read sees: the value at a path of a document, or only the keys for a shallow read.
import type { EntityDocument, ReadPath } from "./entity.ts";
import { type FabricValue, isFabricArray, isFabricObject } from "./fabric-value.ts";
import { isIndex } from "./pointer.ts";

/** `undefined` is a value in documents, so absence is represented separately. */
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

/** What a shallow read sees: the keys of an object, the length of an array, or a leaf. */
export function shallowAt(document: EntityDocument | undefined, path: ReadPath): ValueAt {
  const whole = valueAt(document, path);
  if (!whole.exists) return whole;
  if (isFabricArray(whole.value)) return { exists: true, value: { length: whole.value.length } };
  if (isFabricObject(whole.value)) return { exists: true, value: Object.keys(whole.value).sort() };
  return whole;
}

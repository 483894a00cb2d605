// Reading a document through a transaction's recording view exactly as far as a read of a path goes.
import type { Tx } from "@claudemesh/client/space";
import type { EntityDocument } from "@claudemesh/protocol/spaces/entity";
import type { FabricValue } from "@claudemesh/protocol/spaces/fabric-value";
import { shallowAt, valueAt } from "@claudemesh/protocol/spaces/value-at";

type Read = { readonly path: readonly string[]; readonly shallow: boolean };

export function lookThrough(
  tx: Pick<Tx, "get">,
  id: string,
  { path, shallow }: Read,
): { readonly exists: boolean; readonly value?: FabricValue } {
  const document = copyAlong(tx.get(id), path, shallow);
  return (shallow ? shallowAt : valueAt)(document, path);
}

/** Touches exactly what a read of the path touches, and copies that. */
function copyAlong(view: unknown, path: readonly string[], isShallow: boolean): EntityDocument | undefined {
  if (view === undefined) return undefined;
  const copy = (value: unknown, depth: number): unknown => {
    if (typeof value !== "object" || value === null) return value;
    const key = path[depth];
    if (key !== undefined) {
      const made: unknown = Array.isArray(value) ? [] : {};
      if (Object.hasOwn(value, key)) Reflect.set(made as object, key, copy(Reflect.get(value, key), depth + 1));
      return made;
    }
    if (!isShallow) return JSON.parse(JSON.stringify(value)) as unknown;
    if (Array.isArray(value)) return Array.from({ length: value.length }, () => null);
    return Object.fromEntries(Object.keys(value).map((each) => [each, null]));
  };
  return copy(view, 0) as EntityDocument;
}

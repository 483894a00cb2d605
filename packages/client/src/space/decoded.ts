// Decodes values from the wire: a wrong form gives undefined, not an exception that would end in a socket's handler.
import { MeshError } from "@claudemesh/protocol/errors";
import type { JsonValue } from "@claudemesh/protocol/json";
import { decodeFabric, type FabricValue } from "@claudemesh/protocol/spaces/fabric-value";

/** Wrapped, because undefined is a value too. */
export function decodeOrNothing(json: JsonValue): { readonly value: FabricValue } | undefined {
  try {
    return { value: decodeFabric(json) };
  } catch (error) {
    if (error instanceof MeshError) return undefined;
    throw error;
  }
}

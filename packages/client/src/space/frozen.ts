// Documents are shared between the tiers and all readers, so every document that leaves is frozen.
import { type FabricValue, isBytes } from "@claudemesh/protocol/spaces/fabric-value";

/** A frozen value is not walked again, so that a small change of a large document is cheap. Bytes are not frozen. */
export function frozen<T extends FabricValue>(value: T): T {
  if (typeof value !== "object" || value === null || isBytes(value) || Object.isFrozen(value)) return value;
  for (const member of Object.values(value)) frozen(member as FabricValue);
  return Object.freeze(value) as T;
}

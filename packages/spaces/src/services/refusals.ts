// A refusal inside a shared transaction is a value, so that the neighbours of a refused body are not rolled back.
// Bodies decide before they write: a refusal leaves nothing behind.
import { MeshError } from "@claudemesh/protocol/errors";
import type { Flow } from "../ports/flow.ts";
import type { SpaceRef } from "../ports/rows.ts";
import type { SpacesStore, SpaceTransaction, TransactionHints } from "../ports.ts";

type Settled<T> = { readonly value: T } | { readonly refusal: MeshError };

function* settle<T>(flow: Flow<T>): Flow<Settled<T>> {
  try {
    return { value: yield* flow };
  } catch (error) {
    if (error instanceof MeshError) return { refusal: error };
    throw error;
  }
}

/** Throws the refusal after the transaction has ended. */
export async function transact<T>(
  store: SpacesStore,
  space: SpaceRef,
  body: (tx: SpaceTransaction) => Flow<T>,
  hints?: TransactionHints,
): Promise<T> {
  const settled = await store.transact(space, (tx) => settle(body(tx)), hints);
  if ("refusal" in settled) throw settled.refusal;
  return settled.value;
}

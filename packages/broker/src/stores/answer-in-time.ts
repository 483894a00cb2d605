// For callers that do not wait for a store that has fallen silent: probes and scrapers give up sooner than the
// store's own time-outs end.
import { MeshError } from "@claudemesh/protocol/errors";

const askMs = 2_000;

/** What the store says in time; rejects with `storage_unavailable` otherwise, and ignores a later answer. */
export async function answerInTime<T>(answer: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new MeshError("storage_unavailable")), askMs);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

// A mention that the store refused to write, distinguished from a store that is away: the store is there, and one of its tables is
// not as it should be. Nothing of the send stands then.
import { isRefusal, StorageError } from "@claudemesh/storage/errors";

/** The name of the statement on both stores. */
export const writeMentions = "write_mentions";

export function isMentionFailure(error: unknown): error is StorageError {
  return error instanceof StorageError && error.statement === writeMentions && isRefusal(error);
}

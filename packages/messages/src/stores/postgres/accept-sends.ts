// Sends that a space's commit carries, on PostgreSQL: accepted as one batch at the end of the commit's own transaction,
// which holds the space's lock and takes the mesh's here. They were looked up and limited before.

import type { SendsOutcome } from "@claudemesh/protocol/messages/commit-sends";
import { StorageError } from "@claudemesh/storage/errors";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { outcomeOfSends } from "../../core/sends-outcome.ts";
import type { SendToAccept } from "../../ports.ts";
import { answerOutcome } from "./accept-batches.ts";
import { acceptInTransaction } from "./accept-in-transaction.ts";

export async function acceptCommitSends(
  tx: PostgresTransaction,
  meshId: string,
  sends: readonly SendToAccept[],
): Promise<SendsOutcome> {
  const repeated = indexOfRepeated(sends);
  const batch = sends.slice(0, repeated);
  const accepts = (await acceptInTransaction(tx, meshId, batch)).map((outcome, index) => {
    const send = batch[index];
    // Another try will find the id free; nothing of this one stands.
    if (send === undefined || outcome.type === "forgotten") {
      throw new StorageError("conflict", "an id of the commit's sends was consumed and has just been forgotten");
    }
    return answerOutcome(outcome, send);
  });
  const outcome = outcomeOfSends(accepts);
  if (outcome.type === "refused" || repeated === undefined) return outcome;
  return { type: "refused", index: repeated, code: "idempotency_key_reused" };
}

/** The first send whose id an earlier one of the same commit has. */
function indexOfRepeated(sends: readonly SendToAccept[]): number | undefined {
  const seen = new Set<string>();
  const index = sends.findIndex(({ clientMessageId }) => seen.size === seen.add(clientMessageId).size);
  return index < 0 ? undefined : index;
}

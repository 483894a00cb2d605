// Sends that a space's commit carries, on SQLite: accepted in the commit's own transaction, in their order, until one is
// refused. They were looked up and limited before.

import type { SendsOutcome } from "@claudemesh/protocol/messages/commit-sends";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { outcomeOfSends, refusalOfSend } from "../../core/sends-outcome.ts";
import type { CommittedAccept, SendToAccept } from "../../ports.ts";
import { AcceptBatch } from "./accept-batch.ts";
import { acceptInBatch } from "./accept-in-transaction.ts";

export function acceptCommitSends(tx: Sqlite, sends: readonly SendToAccept[]): SendsOutcome {
  const batch = new AcceptBatch(tx);
  const accepts: CommittedAccept[] = [];
  for (const send of sends) {
    const accept = acceptInBatch(batch, send);
    accepts.push(accept);
    if (refusalOfSend(accept.result) !== undefined) break;
  }
  batch.finish();
  return outcomeOfSends(accepts);
}

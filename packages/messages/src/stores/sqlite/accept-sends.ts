// Sends that a space's commit carries, on SQLite: accepted in the commit's own transaction, in their order, until one is
// refused. B0 and B1 came before.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { outcomeOfSends, refusalOfSend, type SendsOutcome } from "../../core/sends-outcome.ts";
import type { CommittedAccept, SendToAccept } from "../../ports.ts";
import { acceptUnclaimed, answerClaimed } from "./accept-in-transaction.ts";

export function acceptSends(tx: Sqlite, sends: readonly SendToAccept[]): SendsOutcome {
  const accepts: CommittedAccept[] = [];
  for (const send of sends) {
    const accept = answerClaimed(tx, send) ?? acceptUnclaimed(tx, send);
    accepts.push(accept);
    if (refusalOfSend(accept.result) !== undefined) break;
  }
  return outcomeOfSends(accepts);
}

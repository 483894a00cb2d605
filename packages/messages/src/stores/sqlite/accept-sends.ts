// Sends that a space's commit carries, on SQLite: accepted in the commit's own transaction, in their order, until one is
// refused. B0 and B1 came before.

import type { SendsOutcome } from "@claudemesh/protocol/messages/commit-sends";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { outcomeOfSends, refusalOfSend } from "../../core/sends-outcome.ts";
import type { CommittedAccept, SendToAccept } from "../../ports.ts";
import { acceptInRun } from "./accept-in-transaction.ts";
import { AcceptRun } from "./accept-run.ts";

export function acceptCommitSends(tx: Sqlite, sends: readonly SendToAccept[]): SendsOutcome {
  const run = new AcceptRun(tx);
  const accepts: CommittedAccept[] = [];
  for (const send of sends) {
    const accept = acceptInRun(run, send);
    accepts.push(accept);
    if (refusalOfSend(accept.result) !== undefined) break;
  }
  run.finish();
  return outcomeOfSends(accepts);
}
